//! Kill points as variables, and the table of what came of them.

use std::collections::BTreeSet;

use proof::kill::{CRASH_POINTS, End, Histogram, KillPoint, kill_at};

#[test]
fn points_become_variables() {
    assert_eq!(kill_at("k4:2"), ("TALLYONCE_KILL_AT".into(), "k4:2".into()));
    assert_eq!(KillPoint::first("k4").env().1, "k4");
    assert_eq!(KillPoint { point: "k4".into(), nth: 3 }.to_string(), "k4:3");
    let names: BTreeSet<&str> = CRASH_POINTS.iter().map(|point| point.name).collect();
    assert_eq!(names.len(), CRASH_POINTS.len());
}

#[test]
fn random_points_come_from_the_seed_and_reach_all() {
    let points = ["k3", "k4", "k6"];
    let draw = |seed| KillPoint::random(seed, &points, 2);
    assert_eq!(draw(5), draw(5));
    let all: BTreeSet<_> = (0..200).filter_map(draw).collect();
    assert_eq!(all.len(), 6);
    assert_eq!(KillPoint::random(1, &[], 2), None);
}

#[test]
fn the_histogram_counts_and_adds_up() {
    let mut one = Histogram::new();
    one.add("k4", End::Signal(9), "absent");
    one.add("k4", End::Signal(9), "absent");
    one.add("k6", End::Exit(75), "whole");
    let mut sum = one.clone();
    sum.merge(&one);
    assert_eq!((sum.total(), sum.of("k4"), sum.after("whole")), (6, 4, 2));
    let table = sum.to_string();
    let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[1], ["k4", "killed", "4", "absent"]);
    assert_eq!(lines[2], ["k6", "exit", "75", "2", "whole"]);
    assert_eq!(lines[3], ["all", "6"]);
}
