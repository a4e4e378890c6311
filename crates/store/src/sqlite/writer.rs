//! The one writer: a thread that takes all waiting jobs, commits them as a group, and answers when they are durable.
//! Must not know what a job does.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::thread::JoinHandle;

use domain::mutant;
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::connect;
use crate::StoreError;

/// Jobs that may wait; more of them wait at the door, which is the back pressure.
const QUEUE_JOBS_MAX: usize = 64;
/// Jobs of one commit: enough to share an fsync, few enough that none waits long.
const GROUP_JOBS_MAX: usize = 64;

/// Something to do inside the group's transaction, within a savepoint of its own.
trait Job: Send {
    fn run(&mut self, connection: &Connection) -> Result<(), StoreError>;
    fn answer(self: Box<Self>, failure: Option<StoreError>);
}

struct Task<T, F> {
    work: Option<F>,
    done: Option<T>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<T: Send, F: FnOnce(&Connection) -> Result<T, StoreError> + Send> Job for Task<T, F> {
    fn run(&mut self, connection: &Connection) -> Result<(), StoreError> {
        if let Some(work) = self.work.take() {
            self.done = Some(work(connection)?);
        }
        Ok(())
    }

    fn answer(self: Box<Self>, failure: Option<StoreError>) {
        let answer = match (failure, self.done) {
            (Some(error), _) => Err(error),
            (None, Some(done)) => Ok(done),
            (None, None) => Err(connect::broken("a job ended without a result")),
        };
        // Whoever asked may have gone; what is written stays written.
        let _gone = self.reply.send(answer);
    }
}

/// The way to the writer thread.
pub(super) struct Writer {
    queue: Option<mpsc::Sender<Box<dyn Job>>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// Starts the thread over a connection that is ready.
    pub(super) fn start(connection: Connection, path: PathBuf) -> Result<Self, StoreError> {
        let (queue, jobs) = mpsc::channel(QUEUE_JOBS_MAX);
        let thread = std::thread::Builder::new()
            .name("tallyonce-writer".to_owned())
            .spawn(move || serve(connection, &path, jobs))
            .map_err(|e| StoreError::NotWritten { what: format!("no thread for the writer: {e}") })?;
        Ok(Self { queue: Some(queue), thread: Some(thread) })
    }

    /// Runs `work` in a transaction and returns once it is durable.
    pub(super) async fn run<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    {
        let ended = || StoreError::NotWritten { what: "the writer has ended".to_owned() };
        let (reply, answer) = oneshot::channel();
        let task: Box<dyn Job> = Box::new(Task { work: Some(work), done: None, reply });
        let queue = self.queue.as_ref().ok_or_else(ended)?;
        fail::fail_point!("store:queue:send");
        queue.send(task).await.map_err(|_| ended())?;
        fail::fail_point!("store:queue:wait");
        answer.await.unwrap_or_else(|_| {
            Err(StoreError::PossiblyWritten { what: "the writer ended before it answered".to_owned() })
        })
    }
}

impl Drop for Writer {
    /// Lets waiting jobs end; closing the connection then folds the log into the file.
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}

fn serve(connection: Connection, path: &std::path::Path, mut jobs: mpsc::Receiver<Box<dyn Job>>) {
    let mut connection = Some(connection);
    while let Some(first) = jobs.blocking_recv() {
        let mut group = vec![first];
        while group.len() < GROUP_JOBS_MAX
            && let Ok(job) = jobs.try_recv()
        {
            group.push(job);
        }
        let ready = connection.take().map_or_else(|| open(path), Ok);
        match ready {
            Ok(ready) => connection = carry_out(ready, group),
            Err(error) => refuse_all(group, &error),
        }
    }
}

fn open(path: &std::path::Path) -> Result<Connection, StoreError> {
    let mut connection = connect::writer(path)?;
    hook(&mut connection)?;
    Ok(connection)
}

/// The point inside COMMIT at which proof kills the process.
#[cfg(feature = "failpoints")]
pub(super) fn hook(connection: &mut Connection) -> Result<(), StoreError> {
    let at_commit = || {
        fail::fail_point!("k5", |_| true);
        fail::fail_point!("store:txn:in-commit", |_| true);
        false
    };
    Ok(connection.commit_hook(Some(at_commit))?)
}

#[cfg(not(feature = "failpoints"))]
#[expect(clippy::unnecessary_wraps, reason = "the same shape as with fail points")]
pub(super) fn hook(_: &mut Connection) -> Result<(), StoreError> {
    Ok(())
}

/// Runs a group; gives the connection back unless it cannot be trusted any more.
fn carry_out(connection: Connection, mut group: Vec<Box<dyn Job>>) -> Option<Connection> {
    fail::fail_point!("store:txn:begin");
    if let Err(error) = connect::begin_immediate(&connection) {
        refuse_all(group, &error);
        return connection.is_autocommit().then_some(connection);
    }
    let mut failures: Vec<Option<StoreError>> = Vec::with_capacity(group.len());
    let mut lost = None;
    for job in &mut group {
        match in_savepoint(&connection, job.as_mut()) {
            Ok(done) => failures.push(done.err()),
            Err(error) => lost = Some(StoreError::NotWritten { what: error.to_string() }),
        }
        if lost.is_none() && connection.is_autocommit() {
            // The engine gave the whole transaction up (a full disk does that): nothing of the group is written.
            lost = Some(failures.iter().flatten().last().map_or_else(
                || StoreError::NotWritten { what: "the transaction was rolled back".to_owned() },
                |error| StoreError::NotWritten { what: error.to_string() },
            ));
        }
        if lost.is_some() {
            break;
        }
    }
    if mutant!(M24) && lost.is_none() {
        answer(std::mem::take(&mut group), std::mem::take(&mut failures), None);
    }
    fail::fail_point!("k4");
    fail::fail_point!("store:txn:commit-before");
    let lost = lost.or_else(|| commit(&connection).err());
    fail::fail_point!("k6");
    fail::fail_point!("store:txn:commit-after");
    let trusted = lost.is_none() || connection.execute_batch("ROLLBACK").is_ok() || connection.is_autocommit();
    let unsure = matches!(lost, Some(StoreError::PossiblyWritten { .. }));
    answer(group, failures, lost.as_ref());
    (trusted && !unsure).then_some(connection)
}

/// Tells each job of a group what it came to. `lost`: why nothing, or perhaps nothing, of the group is written.
fn answer(group: Vec<Box<dyn Job>>, mut failures: Vec<Option<StoreError>>, lost: Option<&StoreError>) {
    failures.resize_with(group.len(), || None);
    for (job, failure) in group.into_iter().zip(failures) {
        job.answer(failure.or_else(|| lost.map(connect::copy)));
    }
}

fn refuse_all(group: Vec<Box<dyn Job>>, error: &StoreError) {
    for job in group {
        job.answer(Some(connect::copy(error)));
    }
}

fn commit(connection: &Connection) -> Result<(), StoreError> {
    connection.execute_batch("COMMIT").map_err(|error| connect::commit_error(&error))
}

/// What a job came to. The outer error is that of the savepoint: what the job wrote can then be neither kept nor taken
/// back by itself, and the whole group has to go.
fn in_savepoint(connection: &Connection, job: &mut dyn Job) -> Result<Result<(), StoreError>, StoreError> {
    fail::fail_point!("store:txn:savepoint", |_| Err(connect::broken("stopped at a savepoint")));
    connection.execute_batch("SAVEPOINT job")?;
    // A bug that one push meets must not end the writer for all of them.
    let result = catch_unwind(AssertUnwindSafe(|| job.run(connection))).unwrap_or_else(|_| {
        Err(StoreError::Broken { what: "writing this stopped at a bug; nothing of it is written".into() })
    });
    if connection.is_autocommit() {
        return Ok(result);
    }
    if result.is_err() {
        connection.execute_batch("ROLLBACK TO job")?;
    }
    fail::fail_point!("store:txn:release", |_| Err(connect::broken("stopped at a release")));
    connection.execute_batch("RELEASE job")?;
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Answer = oneshot::Receiver<Result<(), StoreError>>;

    fn job(sql: &'static str, fails: bool) -> (Box<dyn Job>, Answer) {
        let (reply, answer) = oneshot::channel();
        let work = move |connection: &Connection| {
            connection.execute_batch(sql)?;
            if fails { Err(connect::broken("on purpose")) } else { Ok(()) }
        };
        (Box::new(Task { work: Some(work), done: None, reply }), answer)
    }

    fn carried_out(jobs: Vec<(Box<dyn Job>, Answer)>) -> (Vec<bool>, Vec<i64>) {
        let connection = Connection::open_in_memory().unwrap();
        let tables = "PRAGMA foreign_keys = ON; CREATE TABLE t(n INTEGER); CREATE TABLE parent(n INTEGER PRIMARY KEY);
                      CREATE TABLE child(n REFERENCES parent(n) DEFERRABLE INITIALLY DEFERRED)";
        connection.execute_batch(tables).unwrap();
        let (group, answers): (Vec<_>, Vec<_>) = jobs.into_iter().unzip();
        let connection = carry_out(connection, group).unwrap();
        let mut rows = connection.prepare("SELECT n FROM t ORDER BY n").unwrap();
        let rows = rows.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap();
        (answers.into_iter().map(|mut answer| answer.try_recv().unwrap().is_ok()).collect(), rows)
    }

    #[test]
    fn a_job_that_fails_takes_back_what_it_wrote_and_nothing_else() {
        let jobs = vec![
            job("INSERT INTO t VALUES (1)", false),
            job("INSERT INTO t VALUES (2)", true),
            job("INSERT INTO t VALUES (3)", false),
        ];
        assert_eq!(carried_out(jobs), (vec![true, false, true], vec![1, 3]));
    }

    #[test]
    fn nobody_is_told_of_success_before_the_commit() {
        // What is wrong with the second shows at the commit only.
        let jobs = vec![job("INSERT INTO t VALUES (1)", false), job("INSERT INTO child VALUES (2)", false)];
        assert_eq!(carried_out(jobs), (vec![false; 2], vec![]));
    }

    #[test]
    fn a_job_that_panics_is_answered_and_the_writer_goes_on() {
        let (reply, answer) = oneshot::channel();
        let work = |connection: &Connection| -> Result<(), StoreError> {
            connection.execute_batch("INSERT INTO t VALUES (2)")?;
            panic!("on purpose")
        };
        let panics: (Box<dyn Job>, Answer) = (Box::new(Task { work: Some(work), done: None, reply }), answer);
        let jobs = vec![job("INSERT INTO t VALUES (1)", false), panics, job("INSERT INTO t VALUES (3)", false)];
        assert_eq!(carried_out(jobs), (vec![true, false, true], vec![1, 3]));
    }

    #[test]
    fn a_job_that_cannot_be_taken_back_takes_the_group_with_it() {
        let jobs = vec![
            job("INSERT INTO t VALUES (1)", false),
            job("INSERT INTO t VALUES (2); RELEASE job", true),
            job("INSERT INTO t VALUES (3)", false),
        ];
        assert_eq!(carried_out(jobs), (vec![false; 3], vec![]));
    }

    #[test]
    fn a_job_that_loses_the_transaction_loses_the_group() {
        let jobs = vec![
            job("INSERT INTO t VALUES (1)", false),
            job("INSERT INTO t VALUES (2); ROLLBACK", false),
            job("INSERT INTO t VALUES (3)", false),
        ];
        assert_eq!(carried_out(jobs), (vec![false; 3], vec![]));
    }
}
