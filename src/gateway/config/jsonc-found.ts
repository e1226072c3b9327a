/** What stands at a place where something else was expected, and what that probably means. */
export function describeFound(text: string, at: number): string {
  const character = text[at];
  if (character === undefined) return "the end of the file: is a bracket not closed?";
  // A longer word, or one with digits, may be a key that somebody forgot to quote.
  const [word] = /[A-Za-z]{1,20}(?!\w)/y.exec(text.slice(at, at + 22)) ?? [];
  if (word !== undefined) return word + adviceOnWord(word);
  switch (character) {
    case '"':
      return "a string: is a comma missing before it?";
    case "'":
    case "‘":
    case "’":
    case "“":
    case "”":
      return `${character} (write plain double quotes: ")`;
    case "#":
      return "# (a comment begins with //)";
    default:
      return /[!-~]/.test(character) ? JSON.stringify(character) : toCodePoint(text, at);
  }
}

function adviceOnWord(word: string): string {
  switch (word) {
    case "True":
    case "False":
    case "Null":
      return ` (write ${word.toLowerCase()})`;
    case "None":
    case "undefined":
      return " (write null)";
    case "true":
    case "false":
    case "null":
      return "";
    default:
      return " (write texts and names in double quotes)";
  }
}

/** Characters that cannot be seen, or look like others, by their number. */
function toCodePoint(text: string, at: number): string {
  const number = text.codePointAt(at)?.toString(16).toUpperCase().padStart(4, "0");
  return `the character U+${number}: remove it`;
}
