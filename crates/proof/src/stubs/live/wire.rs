//! One request to a real server, and its answer. Must not know what is asked.

use std::fmt::Write as _;
use std::io::{self, Read as _, Write as _};
use std::net::SocketAddr;

use tokio::io::{AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

use crate::proxy::wire::{self, Body};
use crate::stubs::{Answer, Request};

/// What frames a message: it is made anew on each side.
const FRAMING: [&str; 5] = ["connection", "content-length", "expect", "keep-alive", "transfer-encoding"];

/// Hands the request on, on a connection of its own, and waits for the whole answer. A server that is gone is a bad
/// gateway.
pub(crate) async fn ask(upstream: SocketAddr, request: &Request) -> Answer {
    match exchange(upstream, request).await {
        Ok(answer) => answer,
        Err(error) => Answer::text(502, &format!("the server behind the door: {error}")),
    }
}

async fn exchange(upstream: SocketAddr, request: &Request) -> io::Result<Answer> {
    let mut stream = TcpStream::connect(upstream).await?;
    stream.set_nodelay(true)?;
    stream.write_all(&bytes(request)).await?;
    let mut from = BufReader::new(stream);
    let head = wire::head(&mut from).await?.ok_or(io::ErrorKind::UnexpectedEof)?;
    let body = Body::of_answer(&head, &request.method)?.content(&mut from).await?;
    let status = head.word(1).parse().map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "no status"))?;
    let headers = head.headers().iter().filter(|(name, _)| !FRAMING.contains(&name.as_str())).cloned().collect();
    Ok(Answer { status, headers, body })
}

fn bytes(request: &Request) -> Vec<u8> {
    let mut head = format!("{} {} HTTP/1.1\r\n", request.method, request.target);
    for (name, value) in request.headers.iter().filter(|(name, _)| !FRAMING.contains(&name.as_str())) {
        let _ = write!(head, "{name}: {value}\r\n");
    }
    let _ = write!(head, "content-length: {}\r\nconnection: close\r\n\r\n", request.body.len());
    [head.as_bytes(), &request.body].concat()
}

/// Posts to a real server from synchronous code, past every fault. Gives head and body of the answer.
pub(super) fn post(
    upstream: SocketAddr,
    path: &str,
    kind: &str,
    session: Option<&str>,
    body: &str,
) -> io::Result<(String, String)> {
    let cookie = session.map(|session| ("cookie".to_owned(), format!("sessionid={session}")));
    let headers = [("host".to_owned(), upstream.to_string()), ("content-type".to_owned(), kind.to_owned())];
    let headers = headers.into_iter().chain(cookie).collect();
    let mut stream = std::net::TcpStream::connect(upstream)?;
    stream.write_all(&bytes(&Request::new("POST", path, headers, body.as_bytes().to_vec())))?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
    Ok((head.to_owned(), body.to_owned()))
}
