//! Destinations in one canonical text.

use std::path::PathBuf;

use delivery::{Destination, DestinationError, HttpUrl, Secret};
use proptest::prelude::*;

#[test]
fn one_place_has_one_text() {
    let table = [
        ("https://Tests.Example.COM/", "https://tests.example.com"),
        ("https://tests.example.com:443", "https://tests.example.com"),
        ("http://localhost:8080", "http://localhost:8080"),
        (" https://example.com/tally/once/ ", "https://example.com/tally/once"),
        ("http://[::1]:80/", "http://[::1]"),
        ("sqlite:./a/./tallyonce.db", "sqlite:a/tallyonce.db"),
        ("sqlite:///var/lib/t.db", "sqlite:/var/lib/t.db"),
        ("sqlite:/var//lib/t.db", "sqlite:/var/lib/t.db"),
    ];
    for (text, canonical) in table {
        let destination = Destination::parse(text).unwrap();
        assert_eq!(destination.to_string(), canonical);
        assert_eq!(Destination::parse(canonical).unwrap(), destination, "{text}");
    }
    assert_eq!(Destination::parse("sqlite:t.db").unwrap(), Destination::Sqlite(PathBuf::from("t.db")));
}

#[test]
fn what_is_no_destination_is_refused_and_says_why() {
    type Is = fn(&DestinationError) -> bool;
    let table: [(&str, Is); 11] = [
        ("", |e| matches!(e, DestinationError::Empty)),
        ("tests.example.com", |e| matches!(e, DestinationError::UnknownKind { .. })),
        ("ftp://example.com", |e| matches!(e, DestinationError::UnknownKind { .. })),
        ("postgres://db/x", |e| matches!(e, DestinationError::Postgres)),
        ("sqlite:", |e| matches!(e, DestinationError::NoPath { .. })),
        ("sqlite://t.db", |e| matches!(e, DestinationError::NoPath { .. })),
        ("sqlite:..", |e| matches!(e, DestinationError::NoPath { .. })),
        ("https://", |e| matches!(e, DestinationError::BadUrl { .. })),
        ("https://token@example.com", |e| matches!(e, DestinationError::Credentials)),
        ("https://example.com/?a=1", |e| matches!(e, DestinationError::Query { .. })),
        ("https://example.com/#x", |e| matches!(e, DestinationError::Query { .. })),
    ];
    for (text, is) in table {
        let error = Destination::parse(text).unwrap_err();
        assert!(is(&error), "{text}: {error:?}");
    }
}

#[test]
fn loopback_is_told_from_the_world() {
    for text in ["http://localhost", "http://127.3.2.1:99", "http://[::1]", "http://a.localhost"] {
        assert!(HttpUrl::parse(text).unwrap().is_loopback(), "{text}");
    }
    for text in ["http://example.com", "http://10.0.0.1", "http://localhost.example.com"] {
        assert!(!HttpUrl::parse(text).unwrap().is_loopback(), "{text}");
    }
}

#[test]
fn a_secret_is_never_shown() {
    let secret = Secret::new(" tly_hunter2\n");
    assert_eq!(secret.expose(), "tly_hunter2");
    assert!(!format!("{secret} {secret:?}").contains("hunter2"));
}

proptest! {
    #[test]
    fn no_error_shows_a_password(user in "[a-z:/?#]{0,5}", path in "[a-z?#@:/]{0,8}") {
        let text = format!("https://{user}:hunter2@example.com{path}");
        if let Err(error) = Destination::parse(&text) {
            prop_assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
        }
    }
}
