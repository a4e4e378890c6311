//! The proof's own tests: each fault does what it says, counted at both ends; processes and reports likewise.

mod client;
mod faults;
mod history;
mod kill;
mod made;
mod oracle;
mod plans;
mod spawned;
mod upstream;
