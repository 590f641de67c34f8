//! The parts of every simulation: seeded random choices.
//!
//! *Holds*: one seed gives one sequence of choices, the same on every machine.
//!
//! *Never*: clocks, threads, sockets, other randomness. Shipped.
//!
//! *Drive it*:
//! ```
//! use wirefs_virtual::Dice;
//!
//! let mut dice = Dice::new(7);
//! assert!(dice.below(6) < 6);
//! assert_eq!(Dice::new(7).word(), Dice::new(7).word());
//! ```
//!
//! *Proved by*: tests beside each module; the simulations that use it.

mod dice;

pub use dice::Dice;
