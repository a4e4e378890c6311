//! Makes large reports to measure with: `cargo run --release -p tallyonce-proof --example junit -- FOLDER CASES`.
//! One case in a hundred fails, one in a thousand breaks or is left out. Equal numbers make equal files.

use std::path::Path;

use anyhow::Context as _;
use proof::oracle::JunitSpec;

/// Cases of one file.
const FILE_CASES: usize = 250_000;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, cases] = arguments.as_slice() else { anyhow::bail!("give FOLDER and CASES") };
    let cases: usize = cases.parse().context("CASES is no number")?;
    std::fs::create_dir_all(folder)?;
    for (number, from) in (0..cases).step_by(FILE_CASES).enumerate() {
        let cases = FILE_CASES.min(cases - from);
        let (errors, skipped) = (cases / 1000, cases / 1000);
        let spec = JunitSpec { errors, skipped, ..JunitSpec::new(number as u64 + 1, cases, cases / 100) };
        std::fs::write(Path::new(folder).join(format!("part-{:04}.xml", number + 1)), spec.xml())?;
    }
    Ok(())
}
