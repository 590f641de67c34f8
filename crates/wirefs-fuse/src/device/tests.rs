use super::*;

#[test]
fn taking_a_request_waits_for_one_unless_it_is_looked_for() {
    for looks in [true, false] {
        let device = open_device().expect("this needs /dev/fuse");
        let connection = Connection::new(Device(device), 1, looks).expect("no mount is needed for that");
        let flags = rustix::fs::fcntl_getfl(connection.lane(0)).expect("it is open");
        assert_eq!(
            flags.contains(OFlags::NONBLOCK),
            looks,
            "else threads would spin, or sleep instead of looking"
        );
    }
}
