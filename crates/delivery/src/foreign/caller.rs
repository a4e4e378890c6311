//! One call to a product: address, credentials, headers, pace, and the judgement of its answer. It repeats nothing.
//! Must not know products: how an error of theirs looks is told by the adapter.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use serde_json::Value;

use super::facts::Rate;
use super::heard::Heard;
use super::trouble::{Trouble, judge, of_failure};
use crate::classify::Answer;
use crate::clock::Clock;
use crate::destination::HttpUrl;
use crate::http::{Http, HttpSettings, Request, SettingsError, Transport};
use crate::secret::Secret;

/// Most bytes of an answer that are read: a page of a listing.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Whether a call changes anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nature {
    /// It may be repeated at any time.
    Reads,
    /// Without an answer it may have been carried out.
    Writes,
}

/// One call.
#[derive(Debug, Clone)]
pub struct Call {
    method: Method,
    path: String,
    headers: HeaderMap,
    body: Bytes,
    nature: Nature,
}

impl Call {
    /// A call without a body. Path and query are encoded already and begin with `/`.
    pub fn new(method: Method, path: impl Into<String>, nature: Nature) -> Self {
        Self { method, path: path.into(), headers: HeaderMap::new(), body: Bytes::new(), nature }
    }

    /// A reading.
    pub fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path, Nature::Reads)
    }

    /// A writing `POST` of JSON.
    pub fn post(path: impl Into<String>, body: &Value) -> Self {
        Self::new(Method::POST, path, Nature::Writes).json(body)
    }

    /// A writing `PUT` of JSON.
    pub fn put(path: impl Into<String>, body: &Value) -> Self {
        Self::new(Method::PUT, path, Nature::Writes).json(body)
    }

    /// A writing `PATCH` of JSON.
    pub fn patch(path: impl Into<String>, body: &Value) -> Self {
        Self::new(Method::PATCH, path, Nature::Writes).json(body)
    }

    /// A `DELETE`.
    pub fn delete(path: impl Into<String>) -> Self {
        Self::new(Method::DELETE, path, Nature::Writes)
    }

    /// The same as a question: products that ask by `POST`.
    pub fn reading(mut self) -> Self {
        self.nature = Nature::Reads;
        self
    }

    /// With a JSON body.
    pub fn json(self, body: &Value) -> Self {
        self.content("application/json", body.to_string())
    }

    /// With a body of any type.
    pub fn content(mut self, media_type: &'static str, body: impl Into<Bytes>) -> Self {
        self.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
        self.body = body.into();
        self
    }

    /// With a body of a type that isn't known before. A type that no header can hold is left out.
    pub(crate) fn typed(mut self, media_type: &str, body: impl Into<Bytes>) -> Self {
        if let Ok(value) = HeaderValue::from_str(media_type) {
            self.headers.insert(header::CONTENT_TYPE, value);
        }
        self.body = body.into();
        self
    }

    /// With one more header, of a name that isn't known before.
    pub fn named_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    /// With one more header. A value that no header can hold is left out: callers pass tokens that were checked.
    pub fn header(mut self, name: &'static str, value: &str) -> Self {
        if let Ok(mut value) = HeaderValue::from_str(value) {
            value.set_sensitive(true);
            self.headers.insert(HeaderName::from_static(name), value);
        }
        self
    }

    /// Whether it changes anything.
    pub fn nature(&self) -> Nature {
        self.nature
    }
}

/// Calls one product.
pub struct Caller {
    http: Http,
    always: HeaderMap,
    pace: Option<Pace>,
    heard: Arc<Heard>,
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller").field("base", self.http.base()).finish_non_exhaustive()
    }
}

impl Caller {
    /// Over sockets, as the settings say. Their token is not sent: products want it in their own way.
    ///
    /// # Errors
    /// The settings can't be used.
    pub fn new(base: HttpUrl, settings: &HttpSettings) -> Result<Self, SettingsError> {
        let settings = HttpSettings { token: None, ..settings.clone() };
        Ok(Self::of(Http::new(base, &settings)?))
    }

    /// Over a network of the caller's.
    pub fn over(base: HttpUrl, transport: Arc<dyn Transport>) -> Self {
        Self::of(Http::over(base, transport))
    }

    fn of(http: Http) -> Self {
        let mut always = HeaderMap::new();
        always.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        Self { http, always, pace: None, heard: Arc::default() }
    }

    /// Never faster than the product allows: calls wait for their turn.
    pub fn paced(mut self, rate: Option<Rate>, clock: Arc<dyn Clock>) -> Self {
        self.pace = rate.map(|rate| Pace { rate, clock, sent_ms: Mutex::new(VecDeque::new()) });
        self
    }

    /// With a header in every call.
    ///
    /// # Errors
    /// [`SettingsError::Token`] if no header can hold it.
    pub fn always(mut self, name: HeaderName, value: &str) -> Result<Self, SettingsError> {
        let mut value = HeaderValue::from_str(value).map_err(|_| SettingsError::Token)?;
        value.set_sensitive(true);
        self.always.insert(name, value);
        Ok(self)
    }

    /// With a user and a secret in every call (RFC 7617).
    ///
    /// # Errors
    /// As [`Self::always`].
    pub fn basic(self, user: &str, secret: &Secret) -> Result<Self, SettingsError> {
        let pair = STANDARD.encode(format!("{user}:{}", secret.expose()));
        self.always(header::AUTHORIZATION, &format!("Basic {pair}"))
    }

    /// With a token in every call (RFC 6750).
    ///
    /// # Errors
    /// As [`Self::always`].
    pub fn bearer(self, token: &Secret) -> Result<Self, SettingsError> {
        self.always(header::AUTHORIZATION, &format!("Bearer {}", token.expose()))
    }

    /// What all answers said of a rate limit.
    pub fn heard(&self) -> Arc<Heard> {
        Arc::clone(&self.heard)
    }

    /// The product's address.
    pub fn base(&self) -> &HttpUrl {
        self.http.base()
    }

    /// How long until so many calls more can be sent at once, in milliseconds.
    pub(super) fn held_back_ms(&self, calls: usize) -> u64 {
        self.pace.as_ref().map_or(0, |pace| pace.until_room_ms(calls))
    }

    /// One call, and its answer if it is a success. `words`: what the product's own error form says, if the answer has it.
    ///
    /// # Errors
    /// By class. A reading without an answer is [`Trouble::Unknown`] too: nothing is known, and nothing was changed.
    pub async fn call(&self, call: Call, words: impl Fn(&Answer) -> Option<String>) -> Result<Answer, Trouble> {
        let nature = call.nature;
        judge(self.ask(call).await?, nature, words)
    }

    /// One call, and its answer whatever it says: for products whose status alone doesn't tell their errors apart.
    ///
    /// # Errors
    /// There was no whole answer.
    pub async fn ask(&self, call: Call) -> Result<Answer, Trouble> {
        if let Some(pace) = &self.pace {
            pace.turn().await;
        }
        let mut headers = self.always.clone();
        for (name, value) in &call.headers {
            headers.insert(name, value.clone());
        }
        let request = Request {
            method: call.method,
            path: &call.path,
            headers,
            body: call.body,
            answer_bytes_max: ANSWER_BYTES_MAX,
        };
        fail::fail_point!("forward:call:begun");
        let answer = self.http.send(request).await;
        fail::fail_point!("forward:call:ended");
        let answer = answer.map_err(|failure| of_failure(&failure))?;
        self.heard.hear(answer.status, &answer.headers);
        Ok(answer)
    }
}

/// When calls were sent, as far as the rate looks back.
struct Pace {
    rate: Rate,
    clock: Arc<dyn Clock>,
    sent_ms: Mutex<VecDeque<u64>>,
}

impl Pace {
    /// Waits until one more call is allowed, and counts it.
    async fn turn(&self) {
        loop {
            let wait_ms = self.take(self.clock.now_ms());
            if wait_ms == 0 {
                return;
            }
            self.clock.sleep(wait_ms).await;
        }
    }

    /// How long until there is room for so many calls; for as many as are allowed in all, if these are more.
    fn until_room_ms(&self, calls: usize) -> u64 {
        let (now_ms, allowed) = (self.clock.now_ms(), self.rate.calls.max(1) as usize);
        let sent = self.counted(now_ms);
        let too_many = (sent.len() + calls.min(allowed)).saturating_sub(allowed);
        let last = too_many.checked_sub(1).and_then(|last| sent.get(last));
        last.map_or(0, |at| (at + self.rate.per_ms).saturating_sub(now_ms))
    }

    /// The calls that count by now.
    fn counted(&self, now_ms: u64) -> MutexGuard<'_, VecDeque<u64>> {
        let mut sent = self.sent_ms.lock().unwrap_or_else(PoisonError::into_inner);
        while sent.front().is_some_and(|at| at + self.rate.per_ms <= now_ms) {
            sent.pop_front();
        }
        sent
    }

    /// Counts a call now, or says how long it has to wait.
    fn take(&self, now_ms: u64) -> u64 {
        let mut sent = self.counted(now_ms);
        match sent.front() {
            Some(first) if sent.len() >= self.rate.calls.max(1) as usize => first + self.rate.per_ms - now_ms,
            _ => {
                sent.push_back(now_ms);
                0
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use async_trait::async_trait;

    use super::*;

    /// A clock that somebody sets.
    struct Set(AtomicU64);

    #[async_trait]
    impl Clock for Set {
        fn now_ms(&self) -> u64 {
            self.0.load(Ordering::Relaxed)
        }

        fn unix_ms(&self) -> u64 {
            self.now_ms()
        }

        async fn sleep(&self, _: u64) {
            std::future::pending::<()>().await;
        }
    }

    #[test]
    fn room_for_several_calls_is_there_once_as_many_no_longer_count() {
        let clock = Arc::new(Set(AtomicU64::new(0)));
        let rate = Rate { calls: 4, per_ms: 1000 };
        let pace = Pace { rate, clock: Arc::clone(&clock) as Arc<dyn Clock>, sent_ms: Mutex::default() };
        for at in [100, 200, 300] {
            assert_eq!(pace.take(at), 0);
        }
        clock.0.store(400, Ordering::Relaxed);
        // One more at once; a second one when that of 100 no longer counts, and all of them when that of 300 doesn't.
        assert_eq!([0, 1, 2, 3, 4, 9].map(|calls| pace.until_room_ms(calls)), [0, 0, 700, 800, 900, 900]);
        clock.0.store(1300, Ordering::Relaxed);
        assert_eq!(pace.until_room_ms(4), 0);
    }
}
