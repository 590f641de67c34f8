//! The service: each request as calls of the tree, on a thread that may wait.

use crate::convert::{attributes, figures, kind_of, set_stat};
use crate::failure::status;
use crate::listing;
use crate::lock::LockHolder;
use crate::node::{Tree, done, failed};
use crate::open_file::OpenFile;
use crate::proto;
use crate::proto::file_system_server::FileSystem;
use crate::store::Storing;
use tokio::sync::mpsc;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};
use wirefs_client::call::{Answer, Call};
use wirefs_op::{Errno, Kind};

/// The data of one message, at most, in bytes.
pub(crate) const DATA_BYTES_MAX: usize = 1024 * 1024;
/// The bytes of a message besides its data, at most.
pub(crate) const HEAD_BYTES_MAX: usize = 64 * 1024;
/// The messages of a stream that wait for the client, at most.
const STREAM_MESSAGES: usize = 4;

/// The service over one tree.
pub(crate) struct Service {
    pub(crate) tree: Tree,
    /// Differs for each run of the gate.
    pub(crate) verifier: u64,
}

type Answered<T> = Result<Response<T>, Status>;
type Stream<T> = ReceiverStream<Result<T, Status>>;

impl Service {
    /// Does something that may wait, on a thread of its own.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Tree) -> Result<T, Errno> + Send + 'static,
    ) -> Answered<T> {
        let tree = self.tree.clone();
        let outcome = tokio::task::spawn_blocking(move || work(&tree)).await;
        let outcome = outcome.map_err(|_| Status::internal("the request failed in the gate"))?;
        outcome.map(Response::new).map_err(status)
    }

    /// The same, with a stream of replies. `work` ends when the client wants no more.
    fn streaming<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Tree, &mut dyn FnMut(T) -> bool) -> Result<(), Errno> + Send + 'static,
    ) -> Answered<Stream<T>> {
        let tree = self.tree.clone();
        let (sender, receiver) = mpsc::channel(STREAM_MESSAGES);
        tokio::task::spawn_blocking(move || {
            let outcome = work(&tree, &mut |message| sender.blocking_send(Ok(message)).is_ok());
            if let Err(errno) = outcome {
                // The client may have gone.
                let _gone = sender.blocking_send(Err(status(errno)));
            }
        });
        Ok(Response::new(ReceiverStream::new(receiver)))
    }
}

#[tonic::async_trait]
impl FileSystem for Service {
    type ReadDirectoryStream = Stream<proto::Entry>;
    type FindStream = Stream<proto::Entry>;
    type FetchStream = Stream<proto::Chunk>;
    type PrefetchStream = Stream<proto::WholeFile>;
    type LockStream = Stream<proto::LockReply>;

    async fn lookup(&self, request: Request<proto::Path>) -> Answered<proto::Attributes> {
        let path = request.into_inner().path;
        self.blocking(move |tree| Ok(attributes(&tree.find(&path)?.stat))).await
    }

    async fn get_attributes(&self, request: Request<proto::Path>) -> Answered<proto::Attributes> {
        let proto::Path { path, object } = request.into_inner();
        self.blocking(move |tree| Ok(attributes(&tree.stat(tree.find_object(&path, object.as_ref())?.id)?)))
            .await
    }

    async fn set_attributes(
        &self,
        request: Request<proto::SetAttributesRequest>,
    ) -> Answered<proto::Attributes> {
        let request = request.into_inner();
        self.blocking(move |tree| {
            let node = tree.find_object(&request.path, request.object.as_ref())?;
            let set = set_stat(&request);
            let call = Call::Setattr { node: node.id, handle: None, set, kill_privileges: false };
            match tree.call(call) {
                Answer::Attr(stat, _) => Ok(attributes(&stat)),
                answer => Err(failed(&answer)),
            }
        })
        .await
    }

    async fn read_link(&self, request: Request<proto::Path>) -> Answered<proto::LinkTarget> {
        let path = request.into_inner().path;
        self.blocking(move |tree| match tree.call(Call::Readlink { node: tree.find(&path)?.id }) {
            Answer::Data(target) => Ok(proto::LinkTarget { target }),
            answer => Err(failed(&answer)),
        })
        .await
    }

    async fn stat_fs(&self, request: Request<proto::Path>) -> Answered<proto::FsFigures> {
        let path = request.into_inner().path;
        self.blocking(move |tree| match tree.call(Call::Statfs { node: tree.find(&path)?.id }) {
            Answer::FsStat(found) => Ok(figures(&found)),
            answer => Err(failed(&answer)),
        })
        .await
    }

    async fn read(&self, request: Request<proto::ReadRequest>) -> Answered<proto::ReadReply> {
        let proto::ReadRequest { path, offset, count, object } = request.into_inner();
        self.blocking(move |tree| {
            let node = tree.find_object(&path, object.as_ref())?;
            let open = OpenFile::open(tree, &node, false)?;
            let attributes = Some(attributes(&tree.stat(node.id)?));
            let data = open.read(offset, DATA_BYTES_MAX.min(count as usize))?;
            Ok(proto::ReadReply { data, attributes })
        })
        .await
    }

    async fn write(&self, request: Request<proto::WriteRequest>) -> Answered<proto::WriteReply> {
        let (proto::WriteRequest { path, offset, data, append, object }, verifier) =
            (request.into_inner(), self.verifier);
        self.blocking(move |tree| {
            if data.len() > DATA_BYTES_MAX {
                return Err(Errno::Invalid);
            }
            let node = tree.find_object(&path, object.as_ref())?;
            let open = match append {
                true => OpenFile::open_to_append(tree, &node)?,
                false => OpenFile::open(tree, &node, true)?,
            };
            let count = open.write(offset, &data)?;
            let attributes = Some(attributes(&tree.stat(node.id)?));
            Ok(proto::WriteReply { count, verifier, attributes })
        })
        .await
    }

    async fn commit(&self, request: Request<proto::Path>) -> Answered<proto::CommitReply> {
        let (proto::Path { path, object }, verifier) = (request.into_inner(), self.verifier);
        self.blocking(move |tree| {
            let node = tree.find_object(&path, object.as_ref())?;
            match node.stat.kind {
                Kind::Directory => listing::sync(tree, &node)?,
                _ => OpenFile::open(tree, &node, true)?.sync()?,
            }
            Ok(proto::CommitReply { verifier })
        })
        .await
    }

    async fn create(&self, request: Request<proto::CreateRequest>) -> Answered<proto::Attributes> {
        let request = request.into_inner();
        let kind = kind_of(request.kind());
        let proto::CreateRequest { path, mode, exclusive, device, .. } = request;
        self.blocking(move |tree| {
            let (dir, name) = tree.above(&path)?;
            match kind {
                Kind::File => {}
                Kind::Directory | Kind::Symlink => return Err(Errno::Invalid),
                Kind::Fifo | Kind::Socket | Kind::CharDevice | Kind::BlockDevice => {
                    let (parent, mode) = (dir.id, kind.mode_bits() | mode & 0o7777);
                    let call = Call::Mknod { parent, name, mode, umask: 0, rdev: device };
                    return Ok(attributes(&tree.entry(tree.call(call))?.stat));
                }
            }
            let (node, open) = OpenFile::create(tree, &dir, name, mode, exclusive)?;
            open.flush()?;
            Ok(attributes(&node.stat))
        })
        .await
    }

    async fn make_directory(&self, request: Request<proto::CreateRequest>) -> Answered<proto::Attributes> {
        let proto::CreateRequest { path, mode, .. } = request.into_inner();
        self.blocking(move |tree| {
            let (dir, name) = tree.above(&path)?;
            let call = Call::Mkdir { parent: dir.id, name, mode: mode & 0o7777, umask: 0 };
            Ok(attributes(&tree.entry(tree.call(call))?.stat))
        })
        .await
    }

    async fn symlink(&self, request: Request<proto::SymlinkRequest>) -> Answered<proto::Attributes> {
        let proto::SymlinkRequest { path, target } = request.into_inner();
        self.blocking(move |tree| {
            let (dir, name) = tree.above(&path)?;
            let call = Call::Symlink { parent: dir.id, name, target: &target };
            Ok(attributes(&tree.entry(tree.call(call))?.stat))
        })
        .await
    }

    async fn link(&self, request: Request<proto::TwoPaths>) -> Answered<proto::Attributes> {
        let proto::TwoPaths { from, to } = request.into_inner();
        self.blocking(move |tree| {
            let (node, (dir, name)) = (tree.find(&from)?, tree.above(&to)?);
            let call = Call::Link { node: node.id, parent: dir.id, name };
            Ok(attributes(&tree.entry(tree.call(call))?.stat))
        })
        .await
    }

    async fn remove(&self, request: Request<proto::Path>) -> Answered<proto::Done> {
        let path = request.into_inner().path;
        self.blocking(move |tree| {
            let (dir, name) = tree.above(&path)?;
            done(&tree.call(Call::Unlink { parent: dir.id, name })).map(|()| proto::Done {})
        })
        .await
    }

    async fn remove_directory(&self, request: Request<proto::Path>) -> Answered<proto::Done> {
        let path = request.into_inner().path;
        self.blocking(move |tree| {
            let (dir, name) = tree.above(&path)?;
            done(&tree.call(Call::Rmdir { parent: dir.id, name })).map(|()| proto::Done {})
        })
        .await
    }

    async fn rename(&self, request: Request<proto::TwoPaths>) -> Answered<proto::Done> {
        let proto::TwoPaths { from, to } = request.into_inner();
        self.blocking(move |tree| {
            let ((parent, name), (to_parent, to_name)) = (tree.above(&from)?, tree.above(&to)?);
            let (parent, to_parent) = (parent.id, to_parent.id);
            done(&tree.call(Call::Rename { parent, name, to_parent, to_name, flags: 0 }))
                .map(|()| proto::Done {})
        })
        .await
    }

    async fn read_directory(&self, request: Request<proto::Path>) -> Answered<Self::ReadDirectoryStream> {
        let path = request.into_inner().path;
        self.streaming(move |tree, send| {
            let dir = tree.find(&path)?;
            listing::list(tree, &dir, &mut |(name, stat)| {
                send(proto::Entry { name: name.into(), attributes: Some(attributes(&stat)) })
            })
        })
    }

    async fn find(&self, request: Request<proto::FindRequest>) -> Answered<Self::FindStream> {
        let proto::FindRequest { path, depth } = request.into_inner();
        self.streaming(move |tree, send| {
            listing::find(tree, &path, depth, &mut |(name, stat)| {
                send(proto::Entry { name: name.into(), attributes: Some(attributes(&stat)) })
            })
        })
    }

    async fn validate(&self, request: Request<proto::ValidateRequest>) -> Answered<proto::ValidateReply> {
        let proto::ValidateRequest { path, version } = request.into_inner();
        self.blocking(move |tree| {
            let stat = tree.stat(tree.find(&path)?.id)?;
            let is_current = stat.version == version;
            Ok(proto::ValidateReply { is_current, attributes: Some(attributes(&stat)) })
        })
        .await
    }

    async fn fetch(&self, request: Request<proto::Path>) -> Answered<Self::FetchStream> {
        let path = request.into_inner().path;
        self.streaming(move |tree, send| {
            let node = tree.find(&path)?;
            let open = OpenFile::open(tree, &node, false)?;
            let mut told = Some(attributes(&tree.stat(node.id)?));
            let mut offset = 0;
            loop {
                let data = open.read(offset, DATA_BYTES_MAX)?;
                offset += data.len() as u64;
                let is_end = data.len() < DATA_BYTES_MAX;
                if !send(proto::Chunk { attributes: told.take(), data }) || is_end {
                    return Ok(());
                }
            }
        })
    }

    async fn store(&self, request: Request<Streaming<proto::StoreRequest>>) -> Answered<proto::Attributes> {
        let mut messages = request.into_inner();
        let first = messages.next().await.ok_or_else(|| status(Errno::Invalid))??;
        let (sender, receiver) = mpsc::channel(STREAM_MESSAGES);
        let tree = self.tree.clone();
        let is_one = first.is_last;
        let storing =
            tokio::task::spawn_blocking(move || Storing::begin(&tree, &first)?.take_all(is_one, receiver));
        // The end of the stream drops the sender, and so ends the storing, whatever came until then.
        let mut is_last = is_one;
        while !is_last && let Some(message) = messages.next().await {
            let message = message?;
            is_last = message.is_last;
            if sender.send(message).await.is_err() {
                break;
            }
        }
        drop(sender);
        let outcome = storing.await.map_err(|_| Status::internal("the request failed in the gate"))?;
        outcome.map(|stat| Response::new(attributes(&stat))).map_err(status)
    }

    async fn prefetch(&self, request: Request<proto::PrefetchRequest>) -> Answered<Self::PrefetchStream> {
        let proto::PrefetchRequest { path, file_bytes_max } = request.into_inner();
        self.streaming(move |tree, send| {
            let bytes_max = u64::from(file_bytes_max).min(DATA_BYTES_MAX as u64);
            let dir = tree.find(&path)?;
            let mut names = Vec::new();
            listing::list(tree, &dir, &mut |(name, stat)| {
                if stat.kind == Kind::File && stat.size > 0 && stat.size <= bytes_max {
                    names.push(name);
                }
                true
            })?;
            for name in names {
                // Files that are gone or grown meanwhile are left out.
                let Ok(node) = tree.child(dir.id, &name) else { continue };
                let Ok(data) =
                    OpenFile::open(tree, &node, false).and_then(|open| open.read(0, DATA_BYTES_MAX))
                else {
                    continue;
                };
                let attributes = Some(attributes(&tree.stat(node.id)?));
                if data.len() as u64 <= bytes_max
                    && !send(proto::WholeFile { name: name.into(), attributes, data })
                {
                    return Ok(());
                }
            }
            Ok(())
        })
    }

    async fn lock(&self, request: Request<Streaming<proto::LockRequest>>) -> Answered<Self::LockStream> {
        let mut requests = request.into_inner();
        let (sender, receiver) = mpsc::channel(STREAM_MESSAGES);
        let mut holder = LockHolder::new(self.tree.clone());
        tokio::spawn(async move {
            // A thread for each request, since a stream lasts as long as its locks.
            while let Some(Ok(request)) = requests.next().await {
                let answered = tokio::task::spawn_blocking(move || {
                    let reply = holder.answer(&request);
                    (holder, reply)
                });
                let Ok((back, reply)) = answered.await else { return };
                holder = back;
                if sender.send(Ok(reply)).await.is_err() {
                    break;
                }
            }
            // That releases all locks, which may wait.
            tokio::task::spawn_blocking(move || drop(holder));
        });
        Ok(Response::new(ReceiverStream::new(receiver)))
    }
}
