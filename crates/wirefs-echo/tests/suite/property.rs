//! Whatever is done, in whatever network: what is fetched is what was kept, and what is gone was reported.

use proptest::prelude::*;
use wirefs_echo::{Distance, HostId, Rate, Redundancy, Refusal};
use wirefs_lab::Probability;

use crate::world::{Site, World, content, id, ms};

#[derive(Clone, Copy, Debug)]
enum Step {
    Keep { bytes: u16, distance: u8 },
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
        6 => (0u16..1_400, 0u8..3).prop_map(|(bytes, distance)| Step::Keep { bytes, distance }),
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

fn site() -> impl Strategy<Value = Site> {
    (1u64..150, 0u64..30, 0u8..4, 0u8..4, 0u8..6).prop_map(|(rtt, jitter, loss, duplicate, reorder)| {
        Site::at(ms(rtt)).with(|way| {
            way.jitter = ms(jitter);
            way.loss = Probability::percent(loss);
            way.corrupt = Probability::percent(loss / 2);
            way.duplicate = Probability::percent(duplicate);
            way.reorder = Probability::percent(reorder);
            way.reorder_delay = ms(rtt / 4);
        })
    })
}

fn redundancy() -> impl Strategy<Value = Redundancy> {
    prop_oneof![
        (1u8..4).prop_map(Redundancy::Copies),
        (1u8..5, 0u8..4).prop_map(|(pieces, extra)| Redundancy::Code { pieces, extra }),
    ]
}

/// What the test knows of the blocks.
#[derive(Default)]
struct Model {
    kept: Vec<(u64, usize)>,
    dropped: Vec<u64>,
    next: u64,
    taps: Vec<(usize, Vec<u8>)>,
}

impl Model {
    fn bytes(&self, number: u64) -> Option<usize> {
        self.kept.iter().find(|(kept, _)| *kept == number).map(|&(_, bytes)| bytes)
    }

    fn apply(&mut self, world: &mut World, step: Step) {
        match step {
            Step::Keep { bytes, distance } => self.keep(world, usize::from(bytes), distance),
            Step::Fetch { number } => {
                if let Some(&(number, _)) = self.kept.get(usize::from(number) % self.kept.len().max(1)) {
                    world.echo.fetch(world.now, id(number)).unwrap();
                }
            }
            Step::Drop { number } => {
                if !self.kept.is_empty() {
                    let (number, _) = self.kept.swap_remove(usize::from(number) % self.kept.len());
                    world.echo.drop_block(world.now, id(number)).unwrap();
                    world.turn();
                    world.fetched.remove(&id(number));
                    world.lost.remove(&id(number));
                    self.dropped.push(number);
                }
            }
            Step::Run { ms: span } => world.run(ms(u64::from(span))),
            Step::Sleep { ms: span } => world.now = world.now + ms(u64::from(span)),
            Step::Cut { host } => {
                if let Some(way) = world.ways.get_mut(usize::from(host)) {
                    way.cut();
                }
            }
            Step::Heal { host } => {
                if let Some(way) = world.ways.get_mut(usize::from(host)) {
                    way.heal();
                }
            }
            Step::Forge { seed, bytes } => {
                let now = world.now;
                world.ways[0].buffer.push_back((now, content(seed, usize::from(bytes)).to_vec()));
            }
            Step::Replay { back } => {
                let place = self.taps.len().saturating_sub(1 + usize::from(back));
                if let Some((host, packet)) = self.taps.get(place).cloned() {
                    let now = world.now;
                    world.ways[host].buffer.push_back((now, packet));
                }
            }
        }
        for (host, way) in world.ways.iter_mut().enumerate() {
            self.taps.extend(way.tap.iter_mut().flat_map(std::mem::take).map(|packet| (host, packet)));
        }
    }

    fn keep(&mut self, world: &mut World, bytes: usize, distance: u8) {
        let number = self.next;
        let distance = [Distance::Any, Distance::Near, Distance::Far][usize::from(distance)];
        let before = world.echo.capacity();
        match world.echo.keep(world.now, id(number), content(number, bytes), distance) {
            Ok(()) => {
                assert!(before.packets_per_block <= before.packets_free, "{before:?}");
                self.kept.push((number, bytes));
                self.next += 1;
            }
            Err(Refusal::NoSpace { .. }) => {}
            Err(refusal) => panic!("{refusal:?}"),
        }
    }

    /// Checks all that was fetched so far.
    fn check(&self, world: &World) {
        for (id, (_, block)) in &world.fetched {
            let number = u128::from_be_bytes(id.0) as u64;
            assert!(!self.dropped.contains(&number), "{number} was dropped");
            assert_eq!(*block, content(number, self.bytes(number).unwrap()), "{number}");
        }
    }
}

/// How a run is set up.
struct Setting {
    sites: Vec<Site>,
    redundancy: Redundancy,
    rate: Rate,
    ram_bytes: usize,
    seed: u64,
}

fn holds(setting: &Setting, steps: Vec<Step>) -> Result<(), TestCaseError> {
    let mut world = World::answering(&setting.sites, setting.seed, |config| {
        config.redundancy = setting.redundancy;
        config.rate = setting.rate;
        config.ram_bytes = setting.ram_bytes;
    });
    world.ways.iter_mut().for_each(|way| way.tap = Some(Vec::new()));
    let mut model = Model::default();
    for step in steps {
        model.apply(&mut world, step);
        model.check(&world);
    }
    for (way, site) in world.ways.iter_mut().zip(&setting.sites) {
        way.heal();
        // From here on nothing more gets lost.
        way.lane.set_profile(Site::at(site.way.delay).way);
    }
    world.run(ms(12_000));
    for (number, bytes) in model.kept.clone() {
        match world.read(number) {
            Some((block, _)) => prop_assert_eq!(block, content(number, bytes)),
            None => {
                prop_assert!(world.lost.contains_key(&id(number)), "{} is gone and was not reported", number)
            }
        }
    }
    for number in model.dropped {
        prop_assert!(world.read(number).is_none());
    }
    let status = world.echo.status(HostId(0)).unwrap();
    prop_assert!(world.echo.memory_bytes().gathered == 0, "{:?}", status);
    Ok(())
}

/// A run that left pieces of a block behind that had been gathered to repair it.
#[test]
fn a_host_that_was_cut_while_blocks_were_kept_leaves_nothing_gathered() {
    let far = Site::at(ms(17)).with(|way| way.reorder_delay = ms(4));
    let reordering = Site::at(ms(17)).with(|way| {
        way.reorder = Probability::percent(1);
        way.reorder_delay = ms(4);
    });
    let setting = Setting {
        sites: vec![Site::at(ms(1)), reordering, far],
        redundancy: Redundancy::Code { pieces: 2, extra: 2 },
        rate: Rate::Adaptive { most: 5_000 },
        ram_bytes: 20_000,
        seed: 4_400_612_155_961_522_461,
    };
    let keep = |bytes, distance| Step::Keep { bytes, distance };
    let steps = vec![
        keep(0, 0),
        keep(0, 0),
        Step::Run { ms: 0 },
        keep(0, 0),
        keep(0, 0),
        keep(0, 0),
        keep(9, 1),
        keep(787, 0),
        keep(78, 1),
        Step::Cut { host: 2 },
        Step::Run { ms: 344 },
    ];
    holds(&setting, steps).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_was_kept_and_not_reported_lost_is_read_bit_for_bit(
        sites in prop::collection::vec(site(), 1..4),
        redundancy in redundancy(),
        rate in prop_oneof![Just(Rate::Fixed(2_000)), Just(Rate::Adaptive { most: 5_000 })],
        ram_bytes in prop_oneof![3 => Just(0), 1 => Just(20_000)],
        steps in steps(),
        seed in any::<u64>(),
    ) {
        holds(&Setting { sites, redundancy, rate, ram_bytes, seed }, steps)?;
    }
}
