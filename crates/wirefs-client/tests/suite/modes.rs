//! What is particular to each mode: when what one client does is seen by another, and what that costs.

mod commit;
mod lazy;
mod session;
mod sessions;
