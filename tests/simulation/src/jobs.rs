//! What jobs are made of: settings, and how their work behaves.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use latido_driver::AgentLimits;
use latido_protocol::files::{
    Backoff, Beats, Budget, JobFile, JobSettings, LogLimits, Orphans, Resume, ResumeOn, Want, Wanted,
};
use latido_protocol::{CountLimit, FORMAT_VERSION, Limit, Span, SubjectName};

use crate::disk::Folder;
use crate::random::Random;
use crate::world::World;

/// Between two starts that nobody ordered, once several came together.
pub(crate) const RESUME_EVERY: Duration = Duration::from_secs(2);

/// A job that may be made, removed and made again under its name.
#[derive(Clone, Debug)]
pub(crate) struct Spec {
    pub(crate) name: SubjectName,
    pub(crate) settings: JobSettings,
    /// its work beats so often; never where it knows nothing of latido
    pub(crate) beats_every: Option<Duration>,
    /// attempts end by themselves after as many seconds as this at most
    pub(crate) lives_for: u64,
}

/// What holds for all jobs together: one slot, and a few starts at once.
pub(crate) fn limits() -> AgentLimits {
    AgentLimits {
        resumes_at_once: NonZeroU32::MIN.saturating_add(1),
        resume_every: RESUME_EVERY,
        blackout_share_percent: 60,
        blackout_count_min: 3,
        slots: BTreeMap::from([("gpu".to_owned(), CountLimit::At(1))]),
    }
}

/// As many jobs as the seed wants, each with settings of its own.
pub(crate) fn specs(seed: u64) -> Vec<Spec> {
    let mut random = Random::new(seed, "jobs");
    let count = random.pick(&[1, 1, 2, 3, 5]);
    (0..count).map(|number| spec(&mut random, number)).collect()
}

fn spec(random: &mut Random, number: usize) -> Spec {
    let interval = random.pick(&[5, 10, 30]);
    let ttl = interval * random.pick(&[2, 3, 6]);
    let settings = JobSettings {
        policy: "default".to_owned(),
        strategy: "script".to_owned(),
        beats: random.pick(&[Beats::Auto, Beats::Own, Beats::Own, Beats::Presence]),
        interval: Span(Duration::from_secs(interval)),
        ttl: Span(Duration::from_secs(ttl)),
        start_within: Span(Duration::from_secs(random.pick(&[5, 20, 60]))),
        looping_after: if random.chance(80) { CountLimit::None } else { CountLimit::At(5) },
        first_output_within: Limit::None,
        excuse_max: Span(Duration::from_secs(60)),
        slots: if random.chance(30) { vec!["gpu".to_owned()] } else { Vec::new() },
        hung_after: limit(random, ttl, ttl * 4),
        run_for: limit(random, 60, 1200),
        resume: Resume {
            on: resume_on(number, random),
            max_attempts: CountLimit::At(random.pick(&[1, 3, 5, 20, 1000])),
            max_attempts_without_progress: if random.chance(80) { CountLimit::None } else { CountLimit::At(3) },
            max_identical_deaths: CountLimit::At(3),
            wall_time_max: limit(random, 600, 6000),
            spare_busy: random.chance(50),
            budget: Budget::default(),
            max_pickups: random.pick(&[1, 3, 10, 1000]),
            backoff: Backoff {
                first: Span(Duration::from_secs(random.pick(&[0, 1, 5]))),
                longest: Span(Duration::from_secs(random.pick(&[5, 60]))),
            },
        },
        orphans: random.pick(&[Orphans::End, Orphans::End, Orphans::End, Orphans::Hold]),
        grace: Span(Duration::from_secs(random.pick(&[1, 5, 10]))),
        linger: Span(Duration::from_secs(5)),
        log: LogLimits {
            size_max: 1 << 20,
            files_max: 2,
            carriage_returns: latido_protocol::files::CarriageReturns::default(),
        },
        history_every: Span(Duration::from_secs(300)),
        presence_every: Span(Duration::from_secs(60)),
        launch: latido_protocol::files::LaunchSettings::default(),
        on_end: None,
    };
    Spec {
        name: name(number),
        beats_every: random.chance(85).then(|| Duration::from_secs(interval) * 9 / 10),
        lives_for: random.pick(&[2, 60, 600, 3600, 100_000]),
        settings,
    }
}

fn limit(random: &mut Random, least: u64, most: u64) -> Limit {
    if random.chance(70) { Limit::None } else { Limit::After(random.seconds(least, most)) }
}

fn resume_on(number: usize, random: &mut Random) -> Vec<ResumeOn> {
    use ResumeOn as R;
    [(R::Lost, 85), (R::Failed, 40), (R::Stale, 35), (R::Hung, 35), (R::Limit, 30)]
        .into_iter()
        .filter(|(_, percent)| random.chance(*percent))
        .map(|(on, _)| on)
        // Without a draw, so that the seeds that are kept mean what they meant.
        .chain((number % 4 == 3).then_some(R::Completed))
        .collect()
}

#[expect(clippy::expect_used, reason = "a constant pattern of letters is a name")]
fn name(number: usize) -> SubjectName {
    format!("job-{number}").parse().expect("letters, a hyphen and digits")
}

/// A job that beats every 30 s and lives for ever, for the measure of speed.
pub(crate) fn steady(number: usize) -> Spec {
    let mut random = Random::new(number as u64, "steady");
    let mut spec = spec(&mut random, number);
    let seconds = |count| Span(Duration::from_secs(count));
    (spec.settings.interval, spec.settings.ttl) = (seconds(30), seconds(180));
    (spec.settings.slots, spec.settings.looping_after) = (Vec::new(), CountLimit::None);
    (spec.settings.hung_after, spec.settings.run_for) = (Limit::None, Limit::None);
    spec.settings.beats = Beats::Own;
    spec.beats_every = Some(Duration::from_secs(30));
    spec.lives_for = u64::MAX;
    spec
}

impl World {
    /// `latido run` and the config make a job; epochs go on from what the ledger tells of its name.
    pub(crate) fn make_job(&mut self, job: usize) {
        let spec = &self.specs[job];
        let wall = self.host.wall();
        let folder = Folder {
            job: JobFile {
                version: FORMAT_VERSION,
                name: spec.name.clone(),
                created_at: wall,
                command: vec!["work".to_owned()],
                directory: "/".into(),
                environment: BTreeMap::new(),
                settings: spec.settings.clone(),
            },
            wanted: Wanted {
                version: FORMAT_VERSION,
                want: Want::Run,
                epoch: self.disk.highest_epoch_in_ledger(job),
                at: wall,
                until: None,
                by: "a test".to_owned(),
                budget: None,
            },
            attempts: BTreeMap::new(),
            lock: std::collections::BTreeSet::new(),
        };
        self.disk.folders.insert(job, folder);
        self.reference.jobs[job].made();
    }
}
