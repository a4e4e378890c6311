//! Where runners write their reports, as far as these can be read: the table behind the search without `--report`.
//! `docs/run.md` shows it, and a test compares the two. Must not look at files.

/// A kind of runner, and where its reports lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// The runner, for people.
    pub runner: &'static str,
    /// Patterns from the working folder, with `/`. `**/` is any number of folders, also none.
    pub patterns: &'static [&'static str],
}

const fn at(runner: &'static str, patterns: &'static [&'static str]) -> Place {
    Place { runner, patterns }
}

/// The first that matches gives the name. Wide patterns are harmless: only what the command wrote counts, and only if it
/// is a report by its content.
pub(super) const PLACES: &[Place] = &[
    // One file a class. `failsafe-summary.xml` lies beside them and holds no test.
    at("Maven Surefire", &["**/target/surefire-reports/TEST-*.xml"]),
    at("Maven Failsafe", &["**/target/failsafe-reports/TEST-*.xml"]),
    // A folder a task or, on Android, a variant.
    at("Gradle", &["**/build/test-results/**/TEST-*.xml", "**/build/outputs/androidTest-results/**/TEST-*.xml"]),
    // Newer versions put the Scala version between `target` and the folder.
    at("sbt", &["**/target/**/test-reports/*.xml"]),
    // A link into the output base. Attempts lie in a folder of their own, and only the last one is the test's result.
    at("Bazel", &["**/bazel-testlogs/**/test.xml"]),
    // The folder is the profile's; the name is what its documentation gives.
    at("cargo-nextest", &["**/target/nextest/*/junit.xml"]),
    // `dotnet test` with a JUnit logger. TRX lies there too, and is not read yet.
    at(".NET", &["**/TestResults/**/*.xml"]),
    // No default: what documentation and pipelines use.
    at("pytest", &["**/pytest*.xml"]),
    at("RSpec", &["**/rspec*.xml"]),
    at("minitest", &["**/test/reports/*.xml"]),
    at("Behave", &["**/reports/TESTS-*.xml"]),
    at("Cucumber", &["**/cucumber*.xml", "**/cucumber-reports/**/*.xml"]),
    at("Robot Framework", &["**/xunit.xml"]),
    at("GoogleTest", &["**/test_detail.xml"]),
    // `ctest --output-junit FILE`. What `ctest -T Test` writes is another format.
    at("CTest", &["**/ctest*.xml"]),
    // One file a spec.
    at("Cypress", &["**/cypress/results/**/*.xml", "**/cypress/reports/**/*.xml"]),
    at("Karma", &["**/TESTS-*.xml", "**/TESTS.xml"]),
    at("Jasmine", &["**/junitresults*.xml"]),
    at("WebdriverIO", &["**/*-junit-reporter.xml"]),
    at("Newman", &["**/newman/*.xml"]),
    at("Codeception", &["**/_output/*.xml"]),
    at("PHPUnit", &["**/build/logs/*.xml"]),
    at("ExUnit", &["**/_build/**/test-junit-report.xml"]),
    at("Common Test", &["**/junit_report.xml"]),
    at("fastlane", &["**/fastlane/test_output/*.junit", "**/fastlane/test_output/*.xml"]),
    at("gotestsum", &["**/unit-tests.xml"]),
    at("Bun", &["**/bun.xml"]),
    // Ant, TestNG, ci_reporter, unittest-xml-reporting, JUnit's console: one file a class, in a folder of one's choice.
    at("Ant and others", &["**/TEST-*.xml"]),
    // jest-junit's default; Vitest, PHPUnit, gotestsum, Deno and many more by their documentation.
    at("Jest and others", &["**/junit.xml", "**/junit[-_]*.xml", "**/*[-_.]junit.xml"]),
    // mocha-junit-reporter's and Web Test Runner's default.
    at("Mocha and others", &["**/test-results.xml", "**/test_results.xml"]),
    // The names in the documentation of go-junit-report, bats, minitest-junit and Playwright.
    at("go-junit-report and others", &["**/report.xml", "**/test-report.xml", "**/results.xml"]),
    // Folders that CI platforms look into, or propose.
    at(
        "a folder for reports",
        &[
            "**/test-results/**/*.xml",
            "**/test-reports/**/*.xml",
            "**/test_results/**/*.xml",
            "**/junit/**/*.xml",
            "**/reports/**/*.xml",
            "**/results/**/*.xml",
        ],
    ),
];

/// Never reports of their own, though a pattern matches.
pub(super) const COPIES: &[&str] = &[
    // TestNG writes its own below those of Surefire and Failsafe: the same tests again.
    "**/surefire-reports/junitreports/*",
    "**/failsafe-reports/junitreports/*",
    // Bazel's attempts, beside the last one's report.
    "**/test_attempts/*",
];

/// How the names of such files end.
pub(super) const ENDINGS: [&str; 2] = [".xml", ".junit"];

/// Folders that are never searched, by name: what other people wrote, what is only compiled, or what tests
/// read. Names that begin with a
/// dot are not searched either.
pub(super) const NEVER: [&str; 16] = [
    "node_modules",
    "bower_components",
    "site-packages",
    "dist-packages",
    "vendor",
    "venv",
    "__pycache__",
    "Pods",
    "_deps",
    "classes",
    "dist",
    "fixtures",
    "__fixtures__",
    "resources",
    "test-classes",
    "testdata",
];

/// Folders that are never searched, by their last two names.
pub(super) const NEVER_BELOW: [(&str, &str); 2] = [("target", "debug"), ("target", "release")];

/// Links to folders that are followed: others may lead round in a circle, or out of the project.
pub(super) const FOLLOWED: [&str; 1] = ["bazel-testlogs"];
