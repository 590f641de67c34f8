//! The error without CAP_NET_RAW names the remedy.

use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};
use wirefs_raw::{EchoSocket, RawError};

use crate::site::{IDENT, LOOPBACKS};

#[test]
fn missing_capability_is_named_with_its_remedy() {
    // Capabilities belong to the thread.
    let without = || {
        let all = capabilities(None).unwrap();
        let effective = all.effective - CapabilitySet::NET_RAW;
        set_capabilities(None, CapabilitySets { effective, ..all }).unwrap();
        LOOPBACKS.map(|host| EchoSocket::open((host, 0).into(), IDENT).unwrap_err())
    };
    for error in std::thread::spawn(without).join().unwrap() {
        assert!(matches!(error, RawError::NotPermitted), "{error}");
        let text = error.to_string();
        assert!(text.contains("CAP_NET_RAW") && text.contains("setcap"), "{text}");
    }
}
