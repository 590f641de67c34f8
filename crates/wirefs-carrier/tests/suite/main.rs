//! What every carrier must do, run over every carrier; and what each kind does beside it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(unreachable_pub, reason = "one binary: `pub` is the suite's own")]

mod cards;
mod contract;
mod far_end;
mod listening;
mod scratch;
mod ssh;
mod sshd;
mod tls;
mod traffic;
mod worlds;

/// Runs the whole contract in one kind of world.
macro_rules! contract_in {
    ($name:ident, $world:expr, [$($test:ident),* $(,)?]) => {
        mod $name {
            $(#[test]
            fn $test() {
                crate::contract::$test(&$world);
            })*
        }
    };
}

macro_rules! contract {
    ($($name:ident: $world:expr;)*) => {
        $(contract_in!($name, $world, [
            frames_arrive_whole_and_in_order_both_ways,
            many_threads_push_and_nothing_is_lost,
            urgent_frames_overtake_queued_bulk,
            full_rate_in_both_directions_does_not_deadlock,
            no_wake_up_is_lost,
            push_wait_bounds_the_queue,
            finish_sends_everything_before_it_closes,
            a_clean_close_is_no_error,
            a_close_within_a_message_is_noticed,
            impossible_sizes_are_blamed_on_the_peer,
            closing_wakes_a_receiver,
            closing_wakes_a_blocked_sender,
            a_vanished_peer_is_told_once,
            connecting_again_works,
        ]);)*
    };
}

contract! {
    memory: crate::worlds::Memory;
    unix: crate::worlds::Unix::new();
    tcp_plain: crate::worlds::TcpPlain::new();
    tcp_tls: crate::worlds::Tls::new();
    ether: crate::worlds::Ether::new();
    ssh_child: crate::worlds::Ssh::with_script();
    ssh_real: crate::worlds::Ssh::with_sshd();
}
