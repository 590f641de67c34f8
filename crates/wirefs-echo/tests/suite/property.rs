//! Random operations in random networks: a fetched block has the stored contents, and a missing one was
//! reported.

use proptest::prelude::*;
use wirefs_echo::{Distance, EchoRefusal, HostId, Redundancy, SendRate};
use wirefs_lab::Probability;

use crate::simulation::{HostProfile, Simulation, content, id, ms};

#[derive(Clone, Copy, Debug)]
enum Step {
    Store { bytes: u16, distance: u8 },
    Fetch { number: u8 },
    Drop { number: u8 },
    Run { ms: u16 },
    Sleep { ms: u16 },
    Cut { host: u8 },
    Heal { host: u8 },
    Forge { seed: u64, bytes: u16 },
    Replay { back: u8 },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0u16..1_400, 0u8..3).prop_map(|(bytes, distance)| Step::Store { bytes, distance }),
        4 => any::<u8>().prop_map(|number| Step::Fetch { number }),
        2 => any::<u8>().prop_map(|number| Step::Drop { number }),
        6 => (0u16..400).prop_map(|ms| Step::Run { ms }),
        1 => (0u16..2_000).prop_map(|ms| Step::Sleep { ms }),
        1 => (0u8..3).prop_map(|host| Step::Cut { host }),
        2 => (0u8..3).prop_map(|host| Step::Heal { host }),
        1 => (any::<u64>(), 0u16..200).prop_map(|(seed, bytes)| Step::Forge { seed, bytes }),
        2 => any::<u8>().prop_map(|back| Step::Replay { back }),
    ];
    prop::collection::vec(step, 1..80)
}

fn profile() -> impl Strategy<Value = HostProfile> {
    (1u64..150, 0u64..30, 0u8..4, 0u8..4, 0u8..6).prop_map(|(rtt, jitter, loss, duplicate, reorder)| {
        HostProfile::at(ms(rtt)).with(|path| {
            path.jitter = ms(jitter);
            path.loss = Probability::percent(loss);
            path.corrupt = Probability::percent(loss / 2);
            path.duplicate = Probability::percent(duplicate);
            path.reorder = Probability::percent(reorder);
            path.reorder_delay = ms(rtt / 4);
        })
    })
}

fn redundancy() -> impl Strategy<Value = Redundancy> {
    prop_oneof![
        (1u8..4).prop_map(Redundancy::Copies),
        (1u8..5, 0u8..4).prop_map(|(pieces, extra)| Redundancy::Code { pieces, extra }),
    ]
}

/// The expected state of the blocks.
#[derive(Default)]
struct Model {
    stored: Vec<(u64, usize)>,
    dropped: Vec<u64>,
    next: u64,
    taps: Vec<(usize, Vec<u8>)>,
}

impl Model {
    fn bytes(&self, number: u64) -> Option<usize> {
        self.stored.iter().find(|(stored, _)| *stored == number).map(|&(_, bytes)| bytes)
    }

    fn apply(&mut self, sim: &mut Simulation, step: Step) {
        match step {
            Step::Store { bytes, distance } => self.store_block(sim, usize::from(bytes), distance),
            Step::Fetch { number } => {
                if let Some(&(number, _)) = self.stored.get(usize::from(number) % self.stored.len().max(1)) {
                    sim.echo.fetch(sim.now, id(number)).unwrap();
                }
            }
            Step::Drop { number } => {
                if !self.stored.is_empty() {
                    let (number, _) = self.stored.swap_remove(usize::from(number) % self.stored.len());
                    sim.echo.drop_block(sim.now, id(number)).unwrap();
                    sim.step();
                    sim.fetched.remove(&id(number));
                    sim.lost.remove(&id(number));
                    self.dropped.push(number);
                }
            }
            Step::Run { ms: span } => sim.run(ms(u64::from(span))),
            Step::Sleep { ms: span } => sim.now = sim.now + ms(u64::from(span)),
            Step::Cut { host } => {
                if let Some(path) = sim.paths.get_mut(usize::from(host)) {
                    path.cut();
                }
            }
            Step::Heal { host } => {
                if let Some(path) = sim.paths.get_mut(usize::from(host)) {
                    path.heal();
                }
            }
            Step::Forge { seed, bytes } => {
                let now = sim.now;
                sim.paths[0].buffer.push_back((now, content(seed, usize::from(bytes)).to_vec()));
            }
            Step::Replay { back } => {
                let place = self.taps.len().saturating_sub(1 + usize::from(back));
                if let Some((host, packet)) = self.taps.get(place).cloned() {
                    let now = sim.now;
                    sim.paths[host].buffer.push_back((now, packet));
                }
            }
        }
        for (host, path) in sim.paths.iter_mut().enumerate() {
            self.taps.extend(path.tap.iter_mut().flat_map(std::mem::take).map(|packet| (host, packet)));
        }
    }

    fn store_block(&mut self, sim: &mut Simulation, bytes: usize, distance: u8) {
        let number = self.next;
        let distance = [Distance::Any, Distance::Near, Distance::Far][usize::from(distance)];
        let before = sim.echo.capacity();
        match sim.echo.store_block(sim.now, id(number), content(number, bytes), distance) {
            Ok(()) => {
                assert!(before.packets_per_block <= before.packets_free, "{before:?}");
                self.stored.push((number, bytes));
                self.next += 1;
            }
            Err(EchoRefusal::NoSpace { .. }) => {}
            Err(refusal) => panic!("{refusal:?}"),
        }
    }

    /// Checks all blocks fetched so far.
    fn check(&self, sim: &Simulation) {
        for (id, (_, block)) in &sim.fetched {
            let number = u128::from_be_bytes(id.0) as u64;
            assert!(!self.dropped.contains(&number), "{number} was dropped");
            assert_eq!(*block, content(number, self.bytes(number).unwrap()), "{number}");
        }
    }
}

/// Configuration of a run.
struct Setting {
    profiles: Vec<HostProfile>,
    redundancy: Redundancy,
    rate: SendRate,
    ram_bytes: usize,
    seed: u64,
}

fn holds(setting: &Setting, steps: Vec<Step>) -> Result<(), TestCaseError> {
    let mut sim = Simulation::answering(&setting.profiles, setting.seed, |config| {
        config.redundancy = setting.redundancy;
        config.rate = setting.rate;
        config.ram_bytes = setting.ram_bytes;
    });
    sim.paths.iter_mut().for_each(|path| path.tap = Some(Vec::new()));
    let mut model = Model::default();
    for step in steps {
        model.apply(&mut sim, step);
        model.check(&sim);
    }
    for (path, profile) in sim.paths.iter_mut().zip(&setting.profiles) {
        path.heal();
        // No loss from here on.
        path.lane.set_profile(HostProfile::at(profile.path.delay).path);
    }
    sim.run(ms(12_000));
    for (number, bytes) in model.stored.clone() {
        match sim.read(number) {
            Some((block, _)) => prop_assert_eq!(block, content(number, bytes)),
            None => {
                prop_assert!(
                    sim.lost.contains_key(&id(number)),
                    "block {} is missing and was not reported",
                    number
                )
            }
        }
    }
    for number in model.dropped {
        prop_assert!(sim.read(number).is_none());
    }
    let status = sim.echo.status(HostId(0)).unwrap();
    prop_assert!(sim.echo.memory_bytes().collected == 0, "{:?}", status);
    Ok(())
}

/// A run that left collected pieces of a repaired block behind.
#[test]
fn disconnected_host_leaves_no_collected_pieces() {
    let far = HostProfile::at(ms(17)).with(|path| path.reorder_delay = ms(4));
    let reordering = HostProfile::at(ms(17)).with(|path| {
        path.reorder = Probability::percent(1);
        path.reorder_delay = ms(4);
    });
    let setting = Setting {
        profiles: vec![HostProfile::at(ms(1)), reordering, far],
        redundancy: Redundancy::Code { pieces: 2, extra: 2 },
        rate: SendRate::Adaptive { max: 5_000 },
        ram_bytes: 20_000,
        seed: 4_400_612_155_961_522_461,
    };
    let store = |bytes, distance| Step::Store { bytes, distance };
    let steps = vec![
        store(0, 0),
        store(0, 0),
        Step::Run { ms: 0 },
        store(0, 0),
        store(0, 0),
        store(0, 0),
        store(9, 1),
        store(787, 0),
        store(78, 1),
        Step::Cut { host: 2 },
        Step::Run { ms: 344 },
    ];
    holds(&setting, steps).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn stored_block_is_read_or_was_reported_lost(
        profiles in prop::collection::vec(profile(), 1..4),
        redundancy in redundancy(),
        rate in prop_oneof![Just(SendRate::Fixed(2_000)), Just(SendRate::Adaptive { max: 5_000 })],
        ram_bytes in prop_oneof![3 => Just(0), 1 => Just(20_000)],
        steps in steps(),
        seed in any::<u64>(),
    ) {
        holds(&Setting { profiles, redundancy, rate, ram_bytes, seed }, steps)?;
    }
}
