// Reads a batch entry by entry, the oldest first. Each has `sequence`, `at` (milliseconds since the Unix epoch), `kind`
// and `fields`: what it says by name, a text or a number.
export function* entries(batch) {
  const texts = batch.texts.split("\0");
  let text = 0;
  let number = 0;
  let field = 0;
  for (let at = 0; at < batch.sequences.length; at++) {
    const fields = {};
    for (let left = batch.fieldsOf[at]; left > 0; left--) {
      const known = batch.fields[batch.field[field++]];
      fields[known.name] = known.holds === "text" ? texts[text++] : batch.numbers[number++];
    }
    yield { sequence: Number(batch.sequences[at]), at: Number(batch.times[at]), kind: batch.kinds[batch.kindOf[at]], fields };
  }
}
