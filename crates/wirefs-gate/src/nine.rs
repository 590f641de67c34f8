//! 9P: addresses, connections, and the threads of each.

mod connection;
mod listen;
mod queue;
mod stream;

pub(crate) use listen::NineAddress;
