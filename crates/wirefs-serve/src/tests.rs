//! A server over a scripted tree, clients over carriers in memory.

mod alone;
mod client;
mod hostile;
mod joined;
mod leases;
mod load;
mod overtaking;
mod pace;
mod refusals;
mod router;
mod script;
mod sessions;
mod stopping;
