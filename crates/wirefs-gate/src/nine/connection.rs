//! One client: a thread that reads its requests, and threads that execute them.

use super::queue::JobQueue;
use super::stream::NineStream;
use bytes::Bytes;
use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use wirefs_ninep::{Admitted, Files, NineConversation, NineUsers};
use wirefs_op::Frame;
use wirefs_op::limits::MESSAGE_BYTES_MIN;

/// The threads that execute requests of one client, at most.
const THREADS_MAX: usize = 8;
/// The size word of a message, in bytes.
const SIZE_BYTES: usize = 4;

struct Connection {
    conversation: NineConversation,
    queue: JobQueue,
    writer: Mutex<NineStream>,
}

/// Serves one client on this thread until its connection ends.
pub(super) fn serve(mut stream: NineStream, files: Arc<dyn Files>, users: NineUsers, number: u32) {
    let Ok(writer) = stream.try_clone() else { return };
    let conversation = NineConversation::new(files, users, number);
    let connection =
        Arc::new(Connection { conversation, queue: JobQueue::default(), writer: Mutex::new(writer) });
    if let Err(error) = receive(&connection, &mut stream)
        && error.kind() == io::ErrorKind::InvalidData
    {
        eprintln!("wirefs-gate: closed the connection of 9P client {number}: {error}");
    }
    connection.queue.close();
    stream.close();
}

/// Reads requests until the connection ends.
fn receive(connection: &Arc<Connection>, stream: &mut NineStream) -> io::Result<()> {
    let fault = |error: String| io::Error::new(io::ErrorKind::InvalidData, error);
    while let Some(body) = read_message(stream, connection.conversation.msize())? {
        match connection.conversation.admit(body).map_err(|error| fault(error.to_string()))? {
            Admitted::Later => {}
            Admitted::Reply(frame) => connection.write(|| vec![frame])?,
            Admitted::Job(job) => {
                if connection.queue.push(job, THREADS_MAX) {
                    start_thread(connection)?;
                }
            }
        }
    }
    Ok(())
}

/// Reads one message without its size word; `None` at the end of the connection.
fn read_message(stream: &mut NineStream, msize: u32) -> io::Result<Option<Bytes>> {
    let mut size = [0; SIZE_BYTES];
    match stream.read_exact(&mut size) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let size = u32::from_le_bytes(size);
    if size > msize || (size as usize) < MESSAGE_BYTES_MIN {
        let text = format!("a message of {size} bytes, where {MESSAGE_BYTES_MIN} to {msize} were agreed on");
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    let mut body = vec![0; size as usize - SIZE_BYTES];
    stream.read_exact(&mut body)?;
    Ok(Some(Bytes::from(body)))
}

fn start_thread(connection: &Arc<Connection>) -> io::Result<()> {
    let connection = Arc::clone(connection);
    let work = move || {
        while let Some(job) = connection.queue.next() {
            let done = connection.conversation.execute(job);
            if connection.write(|| connection.conversation.finish(done)).is_err() {
                return;
            }
        }
    };
    thread::Builder::new().name("wirefs-9p-worker".into()).spawn(work).map(drop)
}

impl Connection {
    /// Creates and writes frames under the writer's lock, so replies are written in the order in which they were
    /// created.
    fn write(&self, frames: impl FnOnce() -> Vec<Frame>) -> io::Result<()> {
        // INVARIANT: a frame is written whole, or the connection ends.
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bytes = Vec::new();
        for frame in frames() {
            bytes.extend_from_slice(&frame.head);
            bytes.extend_from_slice(&frame.data);
        }
        writer.write_all(&bytes).inspect_err(|_| writer.close())
    }
}
