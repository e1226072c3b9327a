import { print, type Run, UsageError } from "../terminal/index.ts";

/**
 * What each shell runs to complete a word: `junctor complete` prints what may stand there, one a line. Names are those of servers and
 * of files in a folder that a person just looks at, so no shell may evaluate them: `compgen -W` of bash would.
 */
const scripts: { readonly [shell: string]: string } = {
  bash: `_junctor() {
  local word
  COMPREPLY=()
  while IFS= read -r word; do
    COMPREPLY+=("$(printf %q "$word")")
  done < <(junctor complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  [[ \${COMPREPLY[0]} == *= ]] && compopt -o nospace
}
complete -o default -F _junctor junctor
`,
  zsh: `#compdef junctor
_junctor() {
  local -a found
  local ret=1
  found=("\${(@f)$(junctor complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ -z "\${found[1]}" ]]; then _files; else
    compadd -S '' -- \${(M)found:#*=} && ret=0
    compadd -- \${found:#*=} && ret=0
    return ret
  fi
}
compdef _junctor junctor
`,
  fish: `complete --command junctor --no-files --arguments '(junctor complete -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'
`,
};

/** `junctor completion` */
export const completion: Run<"completion"> = async ({ operands: [shell = "", stray] }) => {
  const script = Object.hasOwn(scripts, shell) ? scripts[shell] : undefined;
  if (script === undefined || stray !== undefined)
    throw new UsageError(`write junctor completion with one of ${Object.keys(scripts).join(", ")}`);
  await print(script);
  return 0;
};
