//! An HTTP server that answers as a test says, and remembers what it was asked. Must not know who asks.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A request, as far as tests look at it.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    /// Path and query.
    pub(crate) target: String,
    /// Header lines.
    pub(crate) headers: String,
}

impl Asked {
    pub(crate) fn path(&self) -> &str {
        self.target.split('?').next().unwrap()
    }

    pub(crate) fn authorized(&self) -> bool {
        self.headers.to_lowercase().contains("\nauthorization: bearer ")
    }
}

/// An answer.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    status: u16,
    headers: String,
    body: Vec<u8>,
}

impl Answer {
    pub(crate) fn body(body: impl Into<Vec<u8>>) -> Self {
        Self { status: 200, headers: String::new(), body: body.into() }
    }

    pub(crate) fn json(value: &serde_json::Value) -> Self {
        Self::body(value.to_string())
    }

    pub(crate) fn status(status: u16) -> Self {
        Self { status, headers: String::new(), body: b"no".to_vec() }
    }

    pub(crate) fn redirect(to: &str) -> Self {
        Self { status: 302, headers: format!("Location: {to}\r\n"), body: Vec::new() }
    }
}

/// The server. Its thread ends with the test.
pub(crate) struct Stub {
    port: u16,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Stub {
    pub(crate) fn start(answer: impl Fn(&Asked) -> Answer + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&asked);
        std::thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                // Whoever asks may be gone already.
                let _ = serve(&connection, &answer, &seen);
            }
        });
        Self { port, asked }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// How often this path was asked for.
    pub(crate) fn times(&self, path: &str) -> usize {
        self.asked().iter().filter(|asked| asked.path() == path).count()
    }
}

fn serve(connection: &TcpStream, answer: &dyn Fn(&Asked) -> Answer, seen: &Mutex<Vec<Asked>>) -> std::io::Result<()> {
    let mut lines = BufReader::new(connection).lines();
    let Some(first) = lines.next() else { return Ok(()) };
    let target = first?.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut headers = String::from("\n");
    for line in lines {
        let line = line?;
        if line.is_empty() {
            break;
        }
        headers.push_str(&line);
        headers.push('\n');
    }
    let asked = Asked { target, headers };
    seen.lock().unwrap().push(asked.clone());
    let Answer { status, headers, body } = answer(&asked);
    let mut connection = connection;
    let head = format!("HTTP/1.1 {status} x\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    connection.write_all(head.as_bytes())?;
    connection.write_all(&body)
}
