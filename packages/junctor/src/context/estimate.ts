/** Characters of JSON and of English for each token, on average over many definitions (o200k). */
const charactersPerToken = 4.4;

/** About how many tokens a text is for a model. Within 15 % for most definitions; models differ by as much. */
export function estimateTokens(text: string | number): number {
  return Math.ceil((typeof text === "number" ? text : text.length) / charactersPerToken);
}

/** About how many characters a number of tokens is. */
export function toCharacters(tokens: number): number {
  return Math.floor(tokens * charactersPerToken);
}
