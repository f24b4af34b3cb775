//! Makes inputs out of others.

/// Bytes of an input that is made; what is larger is slow to try and shows nothing else. Limits of the formats lie above it
/// only where a file is read, and those have tests of their own.
const LENGTH_MAX: usize = 64 * 1024;

/// Numbers at which integers, floats and times end or turn.
const NUMBERS: [&str; 18] = [
    "0",
    "-1",
    "1",
    "127",
    "256",
    "65536",
    "2147483648",
    "4294967295",
    "4294967296",
    "9007199254740993",
    "9223372036854775807",
    "18446744073709551615",
    "18446744073709551616",
    "1e308",
    "1e999",
    "0.1",
    "1e-320",
    "0.30000000000000004",
];

/// Bytes that structure a text, end it, or are none.
const BYTES: &[u8] = b"{}[]\":,\\\n\r\0 \t=()%/.-+eE'~\x7f\x80\xc3\xff";

/// Makes inputs out of those it keeps.
pub(crate) struct Mutator {
    random: fastrand::Rng,
    words: Vec<Vec<u8>>,
    kept: Vec<Vec<u8>>,
}

impl Mutator {
    /// Begins with these inputs, of which there is one at least.
    pub(crate) fn new(seed: u64, words: &[&str], kept: Vec<Vec<u8>>) -> Self {
        let words = words.iter().chain(&NUMBERS).map(|word| word.as_bytes().to_vec()).collect();
        Self { random: fastrand::Rng::with_seed(seed), words, kept }
    }

    /// Makes one more of those that others are made of.
    pub(crate) fn keep(&mut self, input: Vec<u8>) {
        self.kept.push(input);
    }

    /// Makes an input.
    pub(crate) fn make(&mut self) -> Vec<u8> {
        let mut input = self.other();
        // Mostly one or two changes: what is far from the format is refused at its first byte.
        let changes = 1 + self.random.u32(..4).saturating_sub(1) * self.random.u32(..3);
        for _ in 0..changes {
            self.change(&mut input);
        }
        input.truncate(LENGTH_MAX);
        input
    }

    fn other(&mut self) -> Vec<u8> {
        let index = self.random.usize(..self.kept.len());
        self.kept[index].clone()
    }

    fn byte(&mut self) -> u8 {
        if self.random.bool() { BYTES[self.random.usize(..BYTES.len())] } else { self.random.u8(..) }
    }

    /// A piece of `input`: where it begins and ends. Mostly short.
    fn piece(&mut self, length: usize) -> (usize, usize) {
        let from = self.random.usize(..=length);
        let most = length - from;
        let short = most.min(16);
        let count = if self.random.u8(..4) > 0 { self.random.usize(..=short) } else { self.random.usize(..=most) };
        (from, from + count)
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let (from, to) = self.piece(input.len());
        match self.random.u32(..10) {
            0 => drop(input.drain(from..to)),
            1 => input.truncate(from),
            2 => input.insert(from, self.random.u8(..)),
            3 => {
                let byte = self.byte();
                input.splice(from..to.min(from + 1), [byte]);
            }
            4 => self.put_word(input, from, to),
            5 => self.put_number(input, from),
            6 => {
                // Twice, or very often: nesting, long lists, long texts.
                let times = if self.random.u8(..8) == 0 { 1 + self.random.usize(..400) } else { 1 };
                let piece = input[from..to].repeat(times.min(1 + LENGTH_MAX / (to - from + 1)));
                input.splice(to..to, piece);
            }
            7 => {
                let other = self.other();
                let (begin, end) = self.piece(other.len());
                input.splice(from..to, other[begin..end].iter().copied());
            }
            8 => input[from..to].fill(0),
            _ => self.swap_values(input),
        }
    }

    fn put_word(&mut self, input: &mut Vec<u8>, from: usize, to: usize) {
        let word = self.words[self.random.usize(..self.words.len())].clone();
        // In the place of something, or between.
        let to = if self.random.bool() { to } else { from };
        input.splice(from..to, word);
    }

    /// Puts another number in the place of the next one.
    fn put_number(&mut self, input: &mut Vec<u8>, from: usize) {
        let Some(begin) = input[from..].iter().position(u8::is_ascii_digit).map(|at| from + at) else { return };
        let length = input[begin..].iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'.').count();
        let number = match self.random.u32(..3) {
            0 => NUMBERS[self.random.usize(..NUMBERS.len())].to_owned(),
            1 => (self.random.u64(..) >> self.random.u32(..64)).to_string(),
            _ => (self.random.f64() * 10_f64.powi(self.random.i32(-4..20))).to_string(),
        };
        input.splice(begin..begin + length, number.into_bytes());
    }

    /// Puts one value of a JSON text, or field of a line, in the place of another.
    fn swap_values(&mut self, input: &mut Vec<u8>) {
        let is_edge = |byte: &u8| matches!(byte, b',' | b':' | b'{' | b'}' | b'[' | b']' | b' ' | b'\n' | b'=');
        let edges: Vec<usize> = (0..input.len()).filter(|at| is_edge(&input[*at])).collect();
        if edges.len() < 3 {
            return;
        }
        let one = self.random.usize(..edges.len() - 1);
        let two = self.random.usize(..edges.len() - 1);
        let value = input[edges[one] + 1..edges[one + 1]].to_vec();
        input.splice(edges[two] + 1..edges[two + 1], value);
    }
}
