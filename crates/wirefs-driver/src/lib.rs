//! The threads that join cores, carriers and the kernel.
pub mod mount;
pub mod serve;
