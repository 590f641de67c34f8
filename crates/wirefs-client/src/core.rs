//! The client: its rooms, and access to them.

use crate::answering::Answerer;
use crate::call::CallId;
use crate::config::{Attachment, Config};
use crate::kernel::CallsInProgress;
use crate::output::Outputs;
use crate::requests::Requests;
use crate::sending::Sender;
use crate::view::View;
use wirefs_op::{FileId, Time};

/// The client of one mounted tree.
#[derive(Debug)]
pub struct Client {
    pub(crate) view: View,
    pub(crate) requests: Requests,
    pub(crate) calls: CallsInProgress,
    pub(crate) outputs: Outputs,
}

impl Client {
    /// A client whose tree is attached and whose connection is up.
    pub fn new(config: Config, attachment: Attachment, now: Time) -> Client {
        let mut requests = Requests::new(now);
        // No request waits yet that could be given up.
        requests.attached(attachment.ledger, false);
        requests.allow_data_connections(attachment.data_connections);
        Client {
            view: View::new(config, attachment, now),
            requests,
            calls: CallsInProgress::default(),
            outputs: Outputs::default(),
        }
    }

    /// Notes the absolute path of the mountpoint, without links. From then on, links to it and to places below it are answered
    /// although links are confined ([`Config::confines_links`]); the driver checks for each whether the path leads its caller to
    /// the mount.
    pub fn mounted_at(&mut self, mountpoint: &[u8]) {
        self.view.mount.mountpoint = Some(mountpoint.to_vec());
    }

    /// Whether a call waits for its answer.
    pub fn is_waiting(&self, id: CallId) -> bool {
        self.calls.is_waiting(id)
    }

    /// How many calls wait.
    pub fn waiting(&self) -> usize {
        self.calls.waiting().len()
    }

    /// The number below which all changes are answered. The journal notes it: a replay needs to know which replies the server was told to
    /// forget.
    pub fn answered_below(&self) -> u64 {
        self.requests.answered_below()
    }

    /// Which directory is mounted.
    pub fn root_id(&self) -> FileId {
        self.view.mount.attachment.root.id
    }

    /// The rooms of a function that sends.
    pub(crate) fn sender(&mut self) -> Sender<'_> {
        Sender { view: &mut self.view, requests: &mut self.requests, outputs: &mut self.outputs }
    }

    /// The rooms of a function that answers.
    pub(crate) fn answerer(&mut self) -> Answerer<'_> {
        Answerer { view: &mut self.view, calls: &mut self.calls, outputs: &mut self.outputs }
    }
}
