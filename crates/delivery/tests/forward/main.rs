//! Forwarding into repositories without keys, in a world where every answer can be lost and time is a number.

mod book;
mod plain;
mod product;
mod storm;
mod world;
