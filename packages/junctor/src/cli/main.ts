#!/usr/bin/env node

const [, , ...words] = process.argv;

const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  process.stderr.write(
    `junctor: Node.js ${process.versions.node} is too old: it needs 20.19 or newer; see https://nodejs.org\n`,
  );
  process.exit(2);
}

if (process.env["npm_lifecycle_event"] !== undefined)
  (await import("./terminal/end-with-npm.ts")).endWithNpm();

// A client starts `attach` for every window, and waits for it: it is tried first, and loads next to nothing. Words that it does
// not know are for the rest of the program.
const isServed =
  words[0] === "attach" && (await (await import("./running/attach.ts")).tryAttach(words.slice(1)));

// A handler that ignores its abort signal must not keep a finished command alive.
process.exit(isServed ? 0 : await (await import("./program.ts")).runProgram(words));
