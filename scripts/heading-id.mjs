/** The id of a heading, as repository hosts make it, so that a link holds there and on the site. */
export function toHeadingId(text) {
  return text
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\p{M}\s_-]/gu, "")
    .replaceAll(/\s/g, "-");
}
