use super::*;

#[test]
fn reading_a_request_blocks_unless_it_is_nonblocking() {
    for is_nonblocking in [true, false] {
        let device = open_device().expect("this needs /dev/fuse");
        let connection =
            Connection::new(Device(device), 1, is_nonblocking).expect("no mount is needed for that");
        let flags = rustix::fs::fcntl_getfl(connection.lane(0)).expect("it is open");
        assert_eq!(
            flags.contains(OFlags::NONBLOCK),
            is_nonblocking,
            "else threads would spin, or sleep instead of looking"
        );
    }
}
