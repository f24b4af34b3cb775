//! The recording on the disk: written by a thread of its own, bounded, and read by `latido replay`.
//!
//! The driver never waits for it. A line that cannot be kept, because the disk is slow or full, ends what can be
//! replayed; the recording begins anew when that has passed.

mod read;
mod write;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use latido_driver::recording::{Line, Recorder};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

pub use read::{RecordingError, read};

use crate::settings::RecordingSettings;
use write::{Told, Writer};

/// Lines that may wait for the disk: some seconds of a busy host. Beyond it the recording begins anew.
const QUEUE_MAX: usize = 1024;

/// Listening time after which it begins anew when a line was lost: a disk that is full is so for more than a moment.
const AGAIN_AFTER: Duration = Duration::from_secs(10);

/// A file that is full sooner than this holds beginnings and nothing else; it is told, and nothing more is recorded.
const FULL_AFTER_MIN: Duration = Duration::from_secs(60);

#[derive(Debug)]
enum State {
    /// Lines are kept.
    Open,
    /// A line was lost so long ago, in listening time.
    Lost { listened: Duration },
    /// It does not fit into its bound.
    Off,
}

/// Hands the driver's lines to the thread that writes them.
pub(crate) struct FileRecorder {
    told: SyncSender<Told>,
    /// set by the thread when the disk refuses
    is_refused: Arc<AtomicBool>,
    /// asks for a look at all folders, which completes a beginning in the middle of an agent's life
    looks: UnboundedSender<()>,
    size_max: u64,
    /// of the file
    bytes: u64,
    /// since the last beginning, in listening time
    listened: Duration,
    state: State,
}

/// What runs beside the driver while it is recorded.
pub(crate) struct Beside {
    /// ends when the driver has ended and all is written
    pub(crate) thread: JoinHandle<()>,
    /// each asks for a look at all folders
    pub(crate) looks: UnboundedReceiver<()>,
}

/// Begins to write a recording, after what its file holds.
///
/// # Errors
/// The system refuses a thread.
pub(crate) fn start(path: PathBuf, settings: RecordingSettings) -> io::Result<(FileRecorder, Beside)> {
    let bytes = path.metadata().map_or(0, |file| file.len());
    let (told, queue) = sync_channel(QUEUE_MAX);
    let (looks_out, looks) = unbounded_channel();
    let is_refused = Arc::new(AtomicBool::new(false));
    let mut writer = Writer::new(path, settings.files_max.get(), Arc::clone(&is_refused));
    let thread = std::thread::Builder::new().name("recording".to_owned()).spawn(move || writer.run(&queue))?;
    let size_max = settings.size_max;
    let (listened, state) = (Duration::ZERO, State::Open);
    let recorder = FileRecorder { told, is_refused, looks: looks_out, size_max, bytes, listened, state };
    Ok((recorder, Beside { thread, looks }))
}

impl Recorder for FileRecorder {
    fn note(&mut self, line: &Line) {
        if self.is_refused.swap(false, Ordering::Relaxed) {
            self.state = State::Lost { listened: Duration::ZERO };
        }
        let beginning = if let Line::Began(beginning) = line { Some(beginning) } else { None };
        match &mut self.state {
            State::Off => return,
            State::Lost { listened } if beginning.is_none() => {
                *listened += passed(line);
                return;
            }
            State::Open | State::Lost { .. } => self.listened += passed(line),
        }
        // Texts and numbers of our own: this cannot fail.
        let Ok(mut text) = serde_json::to_vec(line) else { return };
        text.push(b'\n');
        match beginning {
            Some(beginning) => self.begin(text, beginning.is_start),
            None => self.keep(text),
        }
    }

    fn wants_beginning(&self) -> bool {
        match self.state {
            State::Open => self.bytes >= self.size_max,
            State::Lost { listened } => listened >= AGAIN_AFTER,
            State::Off => false,
        }
    }
}

impl FileRecorder {
    fn begin(&mut self, text: Vec<u8>, is_start: bool) {
        let is_full = self.bytes > 0 && self.bytes + text.len() as u64 > self.size_max;
        if text.len() as u64 > self.size_max || (is_full && !is_start && self.listened < FULL_AFTER_MIN) {
            let size_max = self.size_max;
            tracing::error!(
                size_max,
                "a recording of this size holds no minute of what is watched; nothing is recorded"
            );
            self.state = State::Off;
            return;
        }
        if is_full && self.told.try_send(Told::Rotate).is_ok() {
            self.bytes = 0;
        }
        self.listened = Duration::ZERO;
        self.keep(text);
        if !is_start {
            // Nobody takes it where the agent ends.
            let _ending = self.looks.send(());
        }
    }

    fn keep(&mut self, text: Vec<u8>) {
        let length = text.len() as u64;
        self.state = if self.told.try_send(Told::Line(text)).is_ok() {
            self.bytes += length;
            State::Open
        } else {
            State::Lost { listened: Duration::ZERO }
        };
    }
}

/// The listening time that a line tells of.
fn passed(line: &Line) -> Duration {
    match line {
        Line::Step(step) => step.passed.listened,
        Line::Began(_) | Line::AlertAsked { .. } | Line::AbsentForgotten { .. } => Duration::ZERO,
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;
    use std::path::Path;
    use std::sync::mpsc::Receiver;

    use latido_driver::recording::{Beginning, Step};
    use latido_driver::{PASS_EVERY, Passed};
    use latido_protocol::WallTime;

    use super::*;
    use crate::settings::Settings;

    fn began(is_start: bool) -> Line {
        let settings = Settings::default().driver_settings();
        let (latido, at, rows) = ("0.1.0".to_owned(), WallTime::from_millis(0), Default::default());
        Line::Began(Box::new(Beginning { version: 1, latido, at, is_start, settings, rows }))
    }

    fn step(listened: Duration) -> Line {
        let passed = Passed { listened, gap: None, wall: WallTime::from_millis(0) };
        let (facts, orders, entries) = (Vec::new(), Vec::new(), Vec::new());
        Line::Step(Box::new(Step { passed, facts, store_is_away: false, wake_in: PASS_EVERY, orders, entries }))
    }

    fn bound(size_max: u64) -> RecordingSettings {
        RecordingSettings { enabled: true, size_max, files_max: NonZeroU32::MIN.saturating_add(1) }
    }

    fn lines(path: &Path) -> Vec<Line> {
        let mut lines = Vec::new();
        assert_eq!(read(path, |line| lines.push(line)).unwrap(), [0; 0]);
        lines
    }

    /// One whose lines nobody takes from the queue.
    fn unread(size_max: u64) -> (FileRecorder, Receiver<Told>) {
        let (told, queue) = sync_channel(1);
        let (is_refused, (looks, _)) = (Arc::new(AtomicBool::new(false)), unbounded_channel());
        let (bytes, listened, state) = (0, Duration::ZERO, State::Open);
        (FileRecorder { told, is_refused, looks, size_max, bytes, listened, state }, queue)
    }

    #[test]
    fn a_file_that_is_full_is_rotated_and_each_begins_by_itself() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("recording.jsonl");
        let (mut recorder, mut beside) = start(path.clone(), bound(4000)).unwrap();
        recorder.note(&began(true));
        for _ in 0..500 {
            recorder.note(&step(Duration::from_secs(5)));
            if recorder.wants_beginning() {
                recorder.note(&began(false));
                assert!(!recorder.wants_beginning());
            }
        }
        drop(recorder);
        beside.thread.join().unwrap();
        let names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names.len(), 2, "{names:?}");
        for name in names {
            let file = folder.path().join(name);
            assert!(file.metadata().unwrap().len() < 4200, "the bound, and the line that reached it");
            assert!(matches!(&lines(&file)[0], Line::Began(beginning) if !beginning.is_start));
        }
        assert!(beside.looks.try_recv().is_ok(), "each beginning asks for a look at all folders");
    }

    #[test]
    fn the_next_agent_goes_on_in_the_same_file_behind_a_torn_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("recording.jsonl");
        for _ in 0..2 {
            let (mut recorder, beside) = start(path.clone(), bound(1 << 20)).unwrap();
            recorder.note(&began(true));
            drop(recorder);
            beside.thread.join().unwrap();
            let mut text = std::fs::read_to_string(&path).unwrap();
            text.push_str("{\"step\":");
            std::fs::write(&path, text).unwrap();
        }
        let mut beginnings = 0;
        assert_eq!(read(&path, |_| beginnings += 1).unwrap(), [2, 4], "both torn lines");
        assert_eq!(beginnings, 2);
    }

    #[test]
    fn what_follows_a_damaged_line_is_left_out_up_to_the_next_beginning() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("recording.jsonl");
        let line = |line: &Line| serde_json::to_string(line).unwrap();
        let (begin, pass) = (line(&began(true)), line(&step(PASS_EVERY)));
        std::fs::write(&path, format!("{begin}\n{pass}\nbroken\n{pass}\n{begin}\n{pass}\n")).unwrap();
        let mut count = 0;
        assert_eq!(read(&path, |_| count += 1).unwrap(), [3]);
        assert_eq!(count, 4);
    }

    #[test]
    fn a_line_that_nobody_takes_is_lost_and_it_begins_anew_later() {
        let (mut recorder, queue) = unread(1 << 20);
        recorder.note(&began(true));
        recorder.note(&step(Duration::from_secs(5)));
        assert!(!recorder.wants_beginning(), "not at once");
        assert!(matches!(queue.try_recv(), Ok(Told::Line(_))) && queue.try_recv().is_err(), "the second was lost");
        recorder.note(&step(Duration::from_secs(5)));
        recorder.note(&step(Duration::from_secs(5)));
        assert!(queue.try_recv().is_err(), "nothing is kept that could not be replayed");
        assert!(recorder.wants_beginning());
        recorder.note(&began(false));
        assert!(!recorder.wants_beginning() && queue.try_recv().is_ok());
    }

    #[test]
    fn a_bound_that_holds_no_minute_turns_it_off() {
        let (mut recorder, queue) = unread(1000);
        recorder.note(&began(true));
        assert!(queue.try_recv().is_ok());
        while !recorder.wants_beginning() {
            recorder.note(&step(Duration::from_millis(1)));
            while queue.try_recv().is_ok() {}
        }
        recorder.note(&began(false));
        recorder.note(&step(PASS_EVERY));
        assert!(queue.try_recv().is_err() && !recorder.wants_beginning());
    }
}
