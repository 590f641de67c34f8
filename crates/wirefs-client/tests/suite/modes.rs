//! The particulars of each mode: when one client sees the changes of another, and the cost of that.

mod commit;
mod lazy;
mod session;
mod sessions;
