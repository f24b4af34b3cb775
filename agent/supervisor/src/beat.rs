//! What the work has said of itself: the status, and when it goes to the disk.

use std::time::Duration;

use latido_protocol::attempt::{Beat, Ground};
use latido_protocol::files::{Beats, Excuse, Identity, JobSettings, Spent, Start, Status};
use latido_protocol::layout::AttemptDir;
use latido_protocol::notify::{Notification, Watchdog};
use latido_protocol::{FORMAT_VERSION, Limit, Progress, Span, SubjectName, Trouble, Unrecorded, chain};

use crate::clock::{self, Now};

/// How often `status.json` is replaced at most: a plain beat is on the disk within a second.
const WRITE_EVERY: Duration = Duration::from_secs(1);

/// Between two passes while silence is measured closely: a gap of the supervisor's own is found to this precision.
const TICK_EVERY: Duration = Duration::from_secs(10);

/// Bytes of what is told of a job that the work waits for: one line for people.
const CHILD_STEP_MAX: usize = 1024;

/// Why a beat was refused, as a fragment that fits after "cannot".
pub(crate) type Refusal = String;

/// The latest status and what of it is still to be written.
pub(crate) struct Book {
    attempt: AttemptDir,
    status: Status,
    beats: Beats,
    hung_after: Limit,
    first_output_within: Limit,
    history_every: Duration,
    presence_every: Duration,
    /// its own progress has been said, so hints in `STATUS=` count no more
    says_progress: bool,
    /// what the work said of a failure, for the outcome
    errno: Option<i32>,
    started_at: Duration,
    last_beat_at: Duration,
    changed_at: Duration,
    /// when its output was last seen to grow
    grew_at: Duration,
    /// when the excuse was first said that it has or had last
    excused_at: Duration,
    written_at: Duration,
    history_at: Option<Duration>,
    /// something is new since the last write
    dirty: bool,
    /// a checkpoint is new since the last durable write
    checkpoint_due: bool,
    /// grows with everything that is new, for watchers
    revision: u64,
}

mod writes;

impl Book {
    pub(crate) fn new(attempt: AttemptDir, start: &Start, settings: &JobSettings, now: Now) -> Self {
        let status = Status {
            version: FORMAT_VERSION,
            job: start.job.clone(),
            attempt: start.attempt,
            epoch: start.epoch,
            at: clock::wall(),
            sequence: 0,
            last_beat: None,
            progress_changed: None,
            progress: None,
            state: None,
            errors: 0,
            ready: false,
            broken: false,
            silence_s: Span::default(),
            still_s: Span::default(),
            running_s: Span::default(),
            output_bytes: 0,
            idle_s: None,
            excuse: None,
            spent: Spent::default(),
            stopping: false,
            suspended_since: None,
            survivors: Vec::new(),
            trouble: Trouble::default(),
        };
        Self {
            attempt,
            status,
            beats: settings.beats,
            hung_after: settings.hung_after,
            first_output_within: settings.first_output_within,
            history_every: settings.history_every.0,
            // Zero would write without a pause.
            presence_every: settings.presence_every.0.max(WRITE_EVERY),
            says_progress: false,
            errno: None,
            started_at: now.listening,
            last_beat_at: now.listening,
            changed_at: now.listening,
            grew_at: now.listening,
            excused_at: now.listening,
            written_at: now.monotonic,
            history_at: None,
            dirty: true,
            checkpoint_due: false,
            revision: 0,
        }
    }

    /// Takes one beat of the work from the control socket. A new checkpoint is durable when this returns.
    pub(crate) fn handle_beat(&mut self, beat: Beat, now: Now) -> Result<(), Refusal> {
        beat.progress.check().map_err(|error| format!("take the beat: {error}"))?;
        if beat.progress.fraction.is_some_and(|fraction| !(0.0..=1.0).contains(&fraction)) {
            return Err("take the beat: its fraction is not between 0 and 1".to_owned());
        }
        if beat.state.as_ref().is_some_and(|state| state.len() > Progress::TEXT_MAX) {
            return Err(format!("take the beat: its state is longer than {} bytes", Progress::TEXT_MAX));
        }
        if let Some(state) = beat.state {
            self.status.state = Some(state);
        }
        if let Some(errors) = beat.errors {
            self.status.errors = errors;
        }
        self.status.spent = self.status.spent.highest(beat.spent);
        self.says_progress |= beat.progress.fraction.is_some() || beat.progress.done.is_some();
        let brings_checkpoint = beat.progress.checkpoint.is_some();
        self.merge(beat.progress, now);
        self.count_beat(now);
        // A plain beat is acknowledged as heard, also while the disk is full.
        if brings_checkpoint {
            self.make_durable(now).map_err(|error| chain(&error))?;
        }
        Ok(())
    }

    /// A job that the work waits for has moved, so the work has: it stands in the step, and renews no lease.
    pub(crate) fn handle_child(&mut self, child: &SubjectName, mut step: String, now: Now) {
        step.truncate(step.floor_char_boundary(CHILD_STEP_MAX));
        self.merge(Progress { step: Some(format!("{child}: {step}")), ..Progress::default() }, now);
    }

    /// Takes one datagram. A new checkpoint is durable after the next [`Book::make_durable`].
    pub(crate) fn handle_notification(&mut self, said: Notification, now: Now) {
        if said.epoch.is_some_and(|epoch| epoch < self.status.epoch) {
            return;
        }
        let is_beat = said.is_beat();
        self.status.ready |= said.ready;
        match said.watchdog {
            Some(Watchdog::Beat) => self.status.broken = false,
            Some(Watchdog::Trigger) => self.status.broken = true,
            None => {}
        }
        if said.stopping {
            self.status.state = Some("stopping".to_owned());
        } else if said.reloading {
            self.status.state = Some("reloading".to_owned());
        }
        self.errno = said.errno.or(self.errno);
        self.status.spent = self.status.spent.highest(said.spent);
        if said.progress.fraction.is_some() && !self.says_progress {
            self.says_progress = true;
            // Counts that came by a hint would contradict what it says itself from here on.
            if let Some(progress) = &mut self.status.progress {
                (progress.done, progress.total) = (None, None);
            }
        }
        if let Some(hint) = said.hint.filter(|_| !self.says_progress) {
            self.merge(hint, now);
        }
        if let Some(step) = said.status {
            // A line for people: it may change although nothing moves, so it is no new progress.
            self.status.progress.get_or_insert_default().step = Some(step);
        }
        self.merge(said.progress, now);
        if is_beat {
            self.count_beat(now);
        }
        if let Some(length) = said.extend_timeout {
            let because = self.status.progress.as_ref().and_then(|progress| progress.step.clone());
            self.excuse(length, because, now);
        }
        self.touch();
    }

    /// Takes in that the work announces silence from here on. While an excuse runs, a further one continues it, so that
    /// both together are bounded; new progress ends it.
    fn excuse(&mut self, length: Duration, because: Option<String>, now: Now) {
        let since = now.listening.saturating_sub(self.excused_at);
        let runs = self.status.excuse.as_ref().is_some_and(|excuse| since < excuse.length_s.0);
        if !runs {
            self.excused_at = now.listening;
        }
        let length = if runs { since.saturating_add(length) } else { length };
        self.status.excuse = Some(Excuse { since_s: Span::default(), length_s: Span(length), because });
    }

    /// Says that a stop has begun.
    pub(crate) fn mark_stopping(&mut self) {
        self.status.stopping = true;
        self.touch();
    }

    /// Says that the first process was suspended, or goes on.
    pub(crate) fn mark_suspended(&mut self, is_suspended: bool) {
        if is_suspended != self.status.suspended_since.is_some() {
            self.status.suspended_since = is_suspended.then(clock::wall);
            self.touch();
        }
    }

    /// Says what SIGKILL has not ended.
    pub(crate) fn mark_survivors(&mut self, survivors: Vec<Identity>) {
        if self.status.survivors != survivors {
            self.status.survivors = survivors;
            self.touch();
        }
    }

    /// The status as of this pass. `written`: bytes of output so far.
    pub(crate) fn status(&mut self, now: Now, output_bytes: u64) -> &Status {
        self.status.at = clock::wall();
        self.status.silence_s = Span(now.listening.saturating_sub(self.last_beat_at));
        self.status.still_s = Span(now.listening.saturating_sub(self.changed_at));
        self.status.running_s = Span(now.listening.saturating_sub(self.started_at));
        self.see_output(now, output_bytes);
        self.status.idle_s = Some(Span(now.listening.saturating_sub(self.grew_at)));
        if let Some(excuse) = &mut self.status.excuse {
            excuse.since_s = Span(now.listening.saturating_sub(self.excused_at));
        }
        &self.status
    }

    fn see_output(&mut self, now: Now, output_bytes: u64) {
        if output_bytes > self.status.output_bytes {
            // That there is output at all is news: a limit may wait for it.
            if self.status.output_bytes == 0 {
                self.touch();
            }
            self.status.output_bytes = output_bytes;
            self.grew_at = now.listening;
        }
    }

    /// Whether what an order rests on is so.
    pub(crate) fn holds(&self, ground: Ground, now: Now) -> bool {
        match ground {
            Ground::Silent { for_s } => now.listening.saturating_sub(self.last_beat_at) >= for_s.0,
            Ground::Still { for_s } => now.listening.saturating_sub(self.changed_at) >= for_s.0,
            Ground::Repeating { beats } => self.status.sequence <= beats,
            Ground::Broken => self.status.broken,
        }
    }

    /// How long it has run, without the time in which its supervisor was stopped.
    pub(crate) fn ran(&self, now: Now) -> Duration {
        now.listening.saturating_sub(self.started_at)
    }

    /// What it used up.
    pub(crate) fn spent(&self) -> Spent {
        self.status.spent
    }

    /// What the work said of its last error, for the outcome's reason.
    pub(crate) fn errno(&self) -> Option<i32> {
        self.errno
    }

    /// The last progress.
    pub(crate) fn progress(&self) -> Option<Progress> {
        self.status.progress.clone()
    }

    /// Grows with everything new.
    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    /// A datagram of somebody who is not of this attempt was passed over.
    pub(crate) fn count_stranger(&mut self) {
        self.status.trouble.strangers += 1;
    }

    /// The job has ended, and the disk does not take the record.
    pub(crate) fn mark_unrecorded(&mut self, unrecorded: Unrecorded) {
        if self.status.trouble.unrecorded.as_ref() != Some(&unrecorded) {
            self.status.trouble.unrecorded = Some(unrecorded);
            self.touch();
        }
    }

    fn count_beat(&mut self, now: Now) {
        self.status.sequence += 1;
        self.status.last_beat = Some(clock::wall());
        self.last_beat_at = now.listening;
        self.touch();
        if self.history_at.is_none_or(|at| now.monotonic >= at) {
            self.history_at = Some(now.monotonic + self.history_every);
            self.keep_heartbeat();
        }
    }

    fn merge(&mut self, newer: Progress, now: Now) {
        if newer.is_empty() {
            return;
        }
        let before = self.status.progress.clone().unwrap_or_default();
        let progress = self.status.progress.get_or_insert_default();
        progress.merge(newer);
        if *progress == before {
            return;
        }
        self.checkpoint_due |= progress.checkpoint != before.checkpoint;
        self.status.excuse = None;
        self.changed_at = now.listening;
        self.status.progress_changed = Some(clock::wall());
        self.touch();
    }

    fn touch(&mut self) {
        self.dirty = true;
        self.revision += 1;
    }
}
