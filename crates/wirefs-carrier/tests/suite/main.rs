//! The contract of carriers, run over every carrier, and tests of each kind.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(unreachable_pub, reason = "one binary: `pub` is the suite's own")]

mod cards;
mod contract;
mod listening;
mod remote_program;
mod scratch;
mod ssh;
mod sshd;
mod testbeds;
mod tls;
mod traffic;

/// Runs the whole contract on one testbed.
macro_rules! contract_in {
    ($name:ident, $testbed:expr, [$($test:ident),* $(,)?]) => {
        mod $name {
            $(#[test]
            fn $test() {
                crate::contract::$test(&$testbed);
            })*
        }
    };
}

macro_rules! contract {
    ($($name:ident: $testbed:expr;)*) => {
        $(contract_in!($name, $testbed, [
            frames_arrive_whole_and_in_order_in_both_directions,
            many_threads_push_and_nothing_is_lost,
            urgent_frames_overtake_queued_bulk,
            full_rate_in_both_directions_does_not_deadlock,
            no_wake_up_is_lost,
            push_wait_bounds_the_queue,
            finish_sends_everything_before_it_closes,
            a_clean_close_is_no_error,
            close_within_a_message_is_an_error,
            invalid_lengths_are_faults_of_the_peer,
            closing_wakes_a_receiver,
            closing_wakes_a_blocked_sender,
            vanished_peer_is_reported_once,
            connecting_again_works,
        ]);)*
    };
}

contract! {
    memory: crate::testbeds::Memory;
    unix: crate::testbeds::Unix::new();
    tcp_plain: crate::testbeds::TcpPlain::new();
    tcp_tls: crate::testbeds::Tls::new();
    ether: crate::testbeds::Ether::new();
    ssh_child: crate::testbeds::Ssh::with_script();
    ssh_real: crate::testbeds::Ssh::with_sshd();
}
