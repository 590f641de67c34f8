//! The gate, asked by threads that may wait.

use crate::convert::identity;
use crate::proto;
use crate::proto::file_system_client::FileSystemClient;
use crate::service::{DATA_BYTES_MAX, HEAD_BYTES_MAX};
use std::future::Future;
use tokio::runtime::Handle;
use tonic::transport::Channel;
use tonic::{Response, Status};
use wirefs_op::FileId;

pub(super) type Client = FileSystemClient<Channel>;

/// A connected gate.
pub(super) struct Remote {
    pub(super) runtime: Handle,
    client: Client,
}

impl Remote {
    /// Takes a connection over. Returns the verifier of the gate's run too.
    ///
    /// # Errors
    /// The gate has no such directory, or refuses.
    pub(super) fn open(runtime: Handle, channel: Channel, path: &[u8]) -> Result<(Remote, u64), Status> {
        let client = FileSystemClient::new(channel)
            .max_decoding_message_size(DATA_BYTES_MAX + HEAD_BYTES_MAX)
            .max_encoding_message_size(DATA_BYTES_MAX + HEAD_BYTES_MAX);
        let remote = Remote { runtime, client };
        let path = path_message(path.to_vec(), None);
        let committed = remote.ask(|mut client| async move { client.commit(path).await })?;
        Ok((remote, committed.verifier))
    }

    /// Asks, and waits for the reply.
    pub(super) fn ask<T, F: Future<Output = Result<Response<T>, Status>>>(
        &self,
        request: impl FnOnce(Client) -> F,
    ) -> Result<T, Status> {
        self.runtime.block_on(request(self.client.clone())).map(Response::into_inner)
    }
}

pub(super) fn path_message(path: Vec<u8>, object: Option<FileId>) -> proto::Path {
    proto::Path { path: path.into(), object: object.map(identity) }
}
