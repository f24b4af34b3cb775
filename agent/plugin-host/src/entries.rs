//! Journal entries in the columns in which sinks take them.

use crate::bindings::v0_2::sink::latido::plugin::journal::{Batch, Field as Named, ValueKind};

/// Declares the fields of entries: the one list of their names and of what they hold.
macro_rules! fields {
    ($($(#[$doc:meta])* $field:ident $name:literal $holds:ident,)*) => {
        /// A field of journal entries. Names are those of `latido events --json`, a dot between nested ones.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Field { $($(#[$doc])* $field,)* }

        impl Field {
            const COUNT: usize = [$(Self::$field,)*].len();

            /// Every field.
            pub const ALL: [Self; Self::COUNT] = [$(Self::$field,)*];

            /// The name by which plugins know it.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$field => $name,)* }
            }

            /// What its values are.
            pub const fn holds(self) -> ValueKind {
                match self { $(Self::$field => ValueKind::$holds,)* }
            }
        }
    };
}

fields! {
    /// whose
    Subject "subject" Text,
    /// its kind
    Kind "kind" Text,
    /// its attempt
    Attempt "attempt" Whole,
    /// its fencing number
    Epoch "epoch" Whole,
    /// the beat's number in its attempt
    Beat "beat" Whole,
    /// how far it is, 0.0 to 1.0
    ProgressFraction "progress.fraction" Real,
    /// units of work done
    ProgressDone "progress.done" Whole,
    /// units of work in all
    ProgressTotal "progress.total" Whole,
    /// its last step
    ProgressStep "progress.step" Text,
    /// the text for the next attempt
    ProgressCheckpoint "progress.checkpoint" Text,
    /// turns of a conversation
    UsageTurns "usage.turns" Whole,
    /// tokens of a language model
    UsageTokens "usage.tokens" Whole,
    /// money, in US dollars
    UsageCost "usage.cost-usd" Real,
    /// its own word for what it does; of an alert whether it holds
    State "state" Text,
    /// errors it has counted
    Errors "errors" Whole,
    /// the verdict before
    Previous "previous" Text,
    /// the verdict after
    Current "current" Text,
    /// where a job is in latido's hands
    Phase "phase" Text,
    /// how an attempt ended
    OutcomeKind "outcome.kind" Text,
    /// its exit status
    OutcomeCode "outcome.code" Whole,
    /// the signal that ended it
    OutcomeSignal "outcome.signal" Whole,
    /// what that means for the job
    OutcomeClass "outcome.class" Text,
    /// how it ended, in words
    OutcomeDetail "outcome.detail" Text,
    /// when it began
    Started "started" Time,
    /// what a worker held
    Target "target" Text,
    /// who held it
    PreviousHolder "previous-holder" Text,
    /// listening time without a beat
    Silence "silence" Duration,
    /// lost attempts so far
    Pickups "pickups" Whole,
    /// the rule that found it
    Rule "rule" Text,
    /// names the alert in all its entries
    Fingerprint "fingerprint" Text,
    /// how bad it is
    Severity "severity" Text,
    /// in words
    Summary "summary" Text,
    /// what is told of an alert
    Telling "telling" Text,
    /// how often it came in this series
    Comings "comings" Whole,
    /// how many subjects it is about
    Subjects "subjects" Whole,
    /// some of them, where it is about many, a space between two
    Who "who" Text,
    /// why, in words
    Reason "reason" Text,
    /// what the agent tells of itself
    What "what" Text,
    /// in words
    Detail "detail" Text,
}

/// What an entry has beside its fields, and a number among them, in bytes.
const ENTRY_BYTES: usize = 20;
const NUMBER_BYTES: usize = 10;

/// A place that is not taken yet.
const NOWHERE: u16 = u16::MAX;

/// A batch of entries of one journal, the oldest first.
#[derive(Clone, Debug)]
pub struct Entries {
    batch: Batch,
    /// where each field is in the batch's list
    places: [u16; Field::COUNT],
}

impl Entries {
    /// No entries yet of the journal of this id.
    pub fn new(journal: impl Into<String>) -> Self {
        let batch = Batch {
            journal: journal.into(),
            kinds: Vec::new(),
            fields: Vec::new(),
            sequences: Vec::new(),
            times: Vec::new(),
            kind_of: Vec::new(),
            fields_of: Vec::new(),
            field: Vec::new(),
            texts: String::new(),
            numbers: Vec::new(),
        };
        Self { batch, places: [NOWHERE; Field::COUNT] }
    }

    /// Adds an entry, whose fields follow. `at_ms` is its wall time in milliseconds since the Unix epoch.
    pub fn add(&mut self, sequence: u64, at_ms: u64, kind: &str) -> Says<'_> {
        let known = self.batch.kinds.iter().position(|known| known == kind);
        let place = known.unwrap_or_else(|| {
            self.batch.kinds.push(kind.to_owned());
            self.batch.kinds.len() - 1
        });
        self.batch.sequences.push(sequence);
        self.batch.times.push(at_ms);
        self.batch.kind_of.push(u16::try_from(place).unwrap_or(NOWHERE));
        self.batch.fields_of.push(0);
        Says(self)
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.batch.sequences.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.batch.sequences.is_empty()
    }

    /// The id of the journal that they are of.
    pub fn journal(&self) -> &str {
        &self.batch.journal
    }

    /// Each entry as it was added.
    pub fn each(&self) -> Vec<Entry<'_>> {
        let batch = &self.batch;
        let (mut texts, mut numbers) = (batch.texts.split('\0'), batch.numbers.iter());
        let mut places = batch.field.iter();
        let mut said = |place: &u16| {
            let named = batch.fields.get(usize::from(*place))?;
            let field = Field::ALL.into_iter().find(|field| field.name() == named.name)?;
            let is_text = named.holds == ValueKind::Text;
            let said = if is_text { texts.next().map(Said::Text) } else { numbers.next().copied().map(Said::Number) };
            said.map(|said| (field, said))
        };
        let heads = batch.sequences.iter().zip(&batch.times).zip(batch.kind_of.iter().zip(&batch.fields_of));
        heads
            .map(|((sequence, at_ms), (kind, count))| Entry {
                sequence: *sequence,
                at_ms: *at_ms,
                kind: batch.kinds.get(usize::from(*kind)).map_or("", String::as_str),
                says: places.by_ref().take(usize::from(*count)).filter_map(&mut said).collect(),
            })
            .collect()
    }

    pub(crate) fn batch(&self) -> &Batch {
        &self.batch
    }

    /// The numbers of the entries, in their order.
    pub fn sequences(&self) -> &[u64] {
        &self.batch.sequences
    }

    /// How many of the first entries are within both limits; one at least.
    pub(crate) fn that_fit(&self, count_max: usize, bytes_max: usize) -> usize {
        let batch = &self.batch;
        let all = ENTRY_BYTES * self.len() + NUMBER_BYTES * batch.numbers.len() + batch.texts.len();
        if self.len() <= count_max && all <= bytes_max {
            return self.len().max(1); // nearly always, and nothing has to be gone through
        }
        let (mut texts, mut fields) = (batch.texts.split_inclusive('\0'), batch.field.iter());
        let mut bytes = 0;
        let within = |count: &&u16| {
            bytes += ENTRY_BYTES;
            for place in fields.by_ref().take(usize::from(**count)) {
                let is_text = batch.fields.get(usize::from(*place)).is_some_and(|it| it.holds == ValueKind::Text);
                bytes += if is_text { texts.next().map_or(0, str::len) } else { NUMBER_BYTES };
            }
            bytes <= bytes_max
        };
        batch.fields_of.iter().take(count_max).take_while(within).count().max(1)
    }

    /// The batch with its first entries alone.
    pub(crate) fn first(&self, count: usize) -> Self {
        let mut first = self.clone();
        let batch = &mut first.batch;
        let kept: usize = batch.fields_of.iter().take(count).map(|fields| usize::from(*fields)).sum();
        batch.field.truncate(kept);
        let holds_text = |place: &&u16| {
            let field = batch.fields.get(usize::from(**place));
            field.is_some_and(|field| field.holds == ValueKind::Text)
        };
        let texts = batch.field.iter().filter(holds_text).count();
        batch.numbers.truncate(kept - texts);
        let end: usize = batch.texts.split_inclusive('\0').take(texts).map(str::len).sum();
        batch.texts.truncate(end);
        batch.sequences.truncate(count);
        batch.times.truncate(count);
        batch.kind_of.truncate(count);
        batch.fields_of.truncate(count);
        first
    }

    fn place(&mut self, field: Field) -> u16 {
        let slot = &mut self.places[field as usize];
        if *slot == NOWHERE {
            *slot = u16::try_from(self.batch.fields.len()).unwrap_or(NOWHERE);
            self.batch.fields.push(Named { name: field.name().to_owned(), holds: field.holds() });
        }
        *slot
    }
}

/// One entry of a batch.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry<'a> {
    /// its number
    pub sequence: u64,
    /// when it was written, in milliseconds since the Unix epoch
    pub at_ms: u64,
    /// its kind
    pub kind: &'a str,
    /// what it says
    pub says: Vec<(Field, Said<'a>)>,
}

/// What an entry says in one field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Said<'a> {
    /// A text.
    Text(&'a str),
    /// Any other value.
    Number(f64),
}

/// What the newest entry of a batch says. The order of the calls is that in which sinks get the fields.
pub struct Says<'a>(&'a mut Entries);

impl Says<'_> {
    /// Says a text. A U+0000 in it would end it, so it is replaced.
    pub fn text(&mut self, field: Field, value: &str) -> &mut Self {
        debug_assert_eq!(field.holds(), ValueKind::Text, "{field:?}");
        self.name(field);
        let texts = &mut self.0.batch.texts;
        if value.contains('\0') {
            texts.push_str(&value.replace('\0', "\u{fffd}"));
        } else {
            texts.push_str(value);
        }
        texts.push('\0');
        self
    }

    /// Says a whole number, or a moment or a length of time in milliseconds. All are far below 2^53.
    #[expect(clippy::cast_precision_loss, reason = "no number of the agent reaches 2^53")]
    pub fn whole(&mut self, field: Field, value: u64) -> &mut Self {
        self.real(field, value as f64)
    }

    /// Says a number.
    pub fn real(&mut self, field: Field, value: f64) -> &mut Self {
        debug_assert_ne!(field.holds(), ValueKind::Text, "{field:?}");
        self.name(field);
        self.0.batch.numbers.push(value);
        self
    }

    fn name(&mut self, field: Field) {
        let place = self.0.place(field);
        let batch = &mut self.0.batch;
        batch.field.push(place);
        if let Some(count) = batch.fields_of.last_mut() {
            *count += 1;
        }
    }
}
