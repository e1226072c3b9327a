/** One fenced block of a page. */
export interface CodeBlock {
  readonly language: string;
  readonly code: string;
  /** The file it stands for: a first line `// name.mjs` says so. */
  readonly file: string | undefined;
}

/** The fenced blocks of a Markdown text, in order. */
export function parseCodeBlocks(markdown: string): readonly CodeBlock[] {
  return [...markdown.matchAll(/^```(\w*)\n(.*?)^```$/gms)].map(([, language = "", code = ""]) => ({
    language,
    code,
    file: /^\/\/ ([\w-]+\.mjs)\n/.exec(code)?.[1],
  }));
}

/** The headings of a Markdown text, as they read. */
export function parseHeadings(markdown: string): readonly string[] {
  return [...markdown.replaceAll(/^```.*?^```$/gms, "").matchAll(/^#{1,6} (.+)$/gm)].map(([, text = ""]) =>
    text.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1"),
  );
}

/** A command of a `console` block, and what it prints. */
export interface Session {
  readonly command: string;
  readonly output: string;
}

/** The commands of a `console` block: lines that begin with `$`, each with the lines up to the next. */
export function parseSessions(code: string): readonly Session[] {
  return code
    .split(/^\$ /m)
    .slice(1)
    .map((part) => {
      const end = part.indexOf("\n");
      return { command: part.slice(0, end), output: part.slice(end + 1) };
    });
}
