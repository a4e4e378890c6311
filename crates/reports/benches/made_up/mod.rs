//! A report that is made up. Must not know what is measured with it.

use std::io::{self, Write};

/// Writes suites of a thousand tests, one in twenty failed with a message of `lines` times 64 bytes.
pub(crate) fn report(out: &mut impl Write, tests: usize, lines: usize) -> io::Result<()> {
    writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"acme\">")?;
    let line = "expected 200 but the gateway answered 502 after three attempts; ";
    let message = line.repeat(lines);
    for i in 0..tests {
        if i % 1000 == 0 {
            let end = if i == 0 { "" } else { "</testsuite>\n" };
            writeln!(out, "{end}<testsuite name=\"suite-{:04}\" timestamp=\"2026-01-01T00:00:00\">", i / 1000)?;
        }
        let (class, millis) = (i / 30 % 900, i * 7919 % 2000);
        write!(
            out,
            "<testcase classname=\"acme.checkout.basket.TestClass{class:03}\" name=\"test_{i:07}_invoice_refund_xxxxxxxxxxxxxxxxxxxxxxxx\" time=\"{}.{:03}\"",
            millis / 1000,
            millis % 1000
        )?;
        if i % 20 == 7 {
            let head = &line.repeat(2)[..80];
            writeln!(out, "><failure message=\"{head}\" type=\"AssertionError\">{message}</failure></testcase>")?;
        } else {
            writeln!(out, "/>")?;
        }
    }
    writeln!(out, "</testsuite>\n</testsuites>")
}
