"""Mutations of shell commands: quoting, options, order, nesting, wrappers, redirections, variables.

Values are chosen so that a value that is run, or a file that is written, leaves a trace in the project.
"""

import random
from collections.abc import Callable, Sequence

from tests.oracle.commands import tokens

VALUES = (
    *(
        "touch pwn",
        "|touch pwn",
        ";touch pwn",
        "$(touch pwn)",
        "`touch pwn`",
        "!touch pwn",
        "sh -c 'touch pwn'",
        "rm",
        "rm f",
    ),
    *(
        "f",
        "g",
        "a.txt",
        "b.txt",
        "pwn",
        "./pwn",
        "/tmp/pwn",
        "out.txt",
        "./run.sh",
        "evil",
        "src",
        ".",
        "*",
        "-",
        "--",
        "/etc/passwd",
    ),
    *(
        "1",
        "0",
        "2",
        "10",
        "-1",
        "x",
        "foo",
        "alpha",
        "id",
        "name",
        "get",
        "list",
        "status",
        "describe",
        "delete",
        "all",
    ),
    *(
        "a=b",
        "x=touch pwn",
        "core.pager=touch pwn",
        "alias.x=!touch pwn",
        "core.fsmonitor=touch pwn",
        "diff.external=touch pwn",
    ),
    *(
        "s/a/b/w pwn",
        "1e touch pwn",
        "w pwn",
        "s/x/touch pwn/e",
        '{print > "pwn"}',
        'BEGIN{system("touch pwn")}',
        "p",
        "1p",
        "$p",
    ),
    *(
        "/alpha/p",
        "{print $1}",
        ".",
        ".name",
        ".items[]",
        "select 1",
        "delete from users",
        "select * from users",
        ".shell touch pwn",
    ),
    *(
        "never",
        "always",
        "auto",
        "json",
        "yaml",
        "UTF-8",
        "main",
        "HEAD",
        "v1",
        "feature",
        "data.csv",
        "data.json",
        "db.sqlite",
    ),
    *("~/.ssh/id_ed25519", "/home/dev/.aws/credentials", "../.netrc", ".env", "$HOME/.ssh/*", "../.*/cred*"),
    *(
        "archive.tar",
        "a.txt.gz",
        "archive.tar.gz",
        "README.md",
        "app.log",
        "+1",
        "%s\\n",
        "\\;",
        "{}",
        "http://example.com/x",
        "@a.txt",
    ),
    *(
        "--output=pwn",
        "-o pwn",
        "-exec touch pwn ;",
        "--to-command=touch pwn",
        "-i",
        "-w",
        "-e",
        "-c",
        "-f",
        "-n",
        "-x",
        "-d",
        "-o",
    ),
)
"""Values for options and operands."""
_DEEDS = (
    "touch pwn",
    "rm f",
    "rm -rf src",
    "cp a.txt pwn",
    "mv f h",
    "tee pwn",
    "sh evil",
    "./run.sh",
    "chmod 600 f",
    "cat ~/.ssh/id_ed25519",
)
_WRAPPERS = (
    *(
        "env {}",
        "env X=1 {}",
        "env -i {}",
        "env -S '{}'",
        "nice {}",
        "nice -n 5 {}",
        "nice -5 {}",
        "nohup {}",
        "timeout 1 {}",
        "timeout -s KILL 1 {}",
    ),
    *(
        "stdbuf -o0 {}",
        "setsid {}",
        "setsid -w {}",
        "setsid -f {}",
        "setarch -R {}",
        "command {}",
        "exec {}",
        "builtin {}",
        "time {}",
        "time -p {}",
    ),
    *(
        "ionice -c 3 {}",
        "taskset 1 {}",
        "chrt -o 0 {}",
        "flock f {}",
        "flock f -c '{}'",
        "script -qc '{}' /dev/null",
        "bash -c '{}'",
        "sh -c '{}'",
    ),
    *(
        "xargs {} < f",
        "ls | xargs {}",
        "ls f | xargs -I@ {} @",
        "ls f | xargs -i {}",
        "ls f | xargs -L1 {}",
        "ls | xargs --replace {}",
        "echo f | xargs -n 1 -t {}",
    ),
    *(
        "find . -maxdepth 0 -exec {} \\;",
        "find f -exec {} {{}} \\;",
        "find f -exec {} {{}} +",
        "find . -name f -ok {} \\;",
        "find . -maxdepth 0 -execdir {} \\;",
    ),
    *(
        "sudo {}",
        "sudo -u root {}",
        "watch -n 1 {}",
        "eval {}",
        "eval '{}'",
        "echo '{}' | sh",
        "echo '{}' | xargs -0 sh -c",
        "bash <<< '{}'",
        "coproc {}",
    ),
    *(
        "prlimit --nofile=64 {}",
        "unshare {}",
        "strace {}",
        "busybox {}",
        "git -c alias.x='!{}' x",
        "awk 'BEGIN{{system(\"{}\")}}'",
        "sed '1e {}' f",
    ),
    *(
        "echo $({})",
        "echo `{}`",
        'echo "$({})"',
        "cat <({})",
        "x=$({}); echo $x",
        "echo ${{x:-$({})}}",
        "echo ${{a[$({})]}}",
        "echo $(( a[$({})] ))",
    ),
    *(
        "( {} )",
        "{{ {}; }}",
        "if true; then {}; fi",
        "while true; do {}; break; done",
        "for i in 1; do {}; done",
        "case x in x) {};; esac",
    ),
    *(
        "g() {{ {}; }}; g",
        "trap '{}' EXIT",
        "trap '{}' DEBUG; true",
        "! {}",
        "[[ -n $({}) ]]",
        'test -n "$({})"',
        "printf '%s' \"$({})\"",
        "cat <<E\n$({})\nE",
    ),
    *(
        "cat <<'E'\n{}\nE",
        "bash <<'E'\n{}\nE",
        "sh <<E\n{}\nE",
        "ls > >({})",
        "mapfile -C '{}' -c 1 < f",
        "PS4='$({})' bash -xc true",
        "BASH_ENV=evil bash -c true",
    ),
    *(
        "alias ls='{}'\nls",
        "shopt -s expand_aliases; alias q='{}'\nq",
        "declare -i n='a[$({})]'",
        "let 'x=a[$({})]'",
        "printf -v 'a[$({})]' x",
        "read 'a[$({})]' < f",
    ),
    *(
        "x='{}'; $x",
        "x='{}'; eval $x",
        "x='{}'; ${{x}}",
        'set -- {}; "$@"',
        'a=({}); "${{a[@]}}"',
        "x='a[$({})]'; echo $((x))",
        "x='a[$({})]'; [[ x -eq 1 ]]",
    ),
)
_ASSIGNMENTS = (
    *(
        "X=1",
        "LC_ALL=C",
        "PATH=.:$PATH",
        "IFS=/",
        "PAGER='touch pwn'",
        "GIT_PAGER='touch pwn'",
        "EDITOR='touch pwn'",
        "GIT_EXTERNAL_DIFF='touch pwn;'",
    ),
    *(
        "GIT_TRACE=$PWD/pwn",
        "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.fsmonitor GIT_CONFIG_VALUE_0='touch pwn'",
        "LESSOPEN='|touch pwn'",
    ),
    *(
        "MANPAGER='touch pwn'",
        "BASH_ENV=./evil",
        "ENV=./evil",
        "PS4='$(touch pwn)'",
        "PROMPT_COMMAND='touch pwn'",
        "SHELLOPTS=xtrace",
        "LD_PRELOAD=./x.so",
    ),
    *(
        "TAR_OPTIONS='--checkpoint=1 --checkpoint-action=exec=./run.sh'",
        "GZIP=-f",
        "PSQLRC=./evil",
        "PERL5OPT=-d",
        "PYTHONSTARTUP=evil",
        "PYTHONINSPECT=1",
    ),
    *(
        "GREP_OPTIONS=--color",
        "LS_COLORS=x",
        "TZ=UTC",
        "AWKPATH=.",
        "MAKEFLAGS='--eval=$(shell touch pwn)'",
        "RIPGREP_CONFIG_PATH=./evil",
        "GIT_SSH_COMMAND='touch pwn'",
    ),
    *(
        "LESS='+!touch pwn'",
        "TERM=xterm",
        "HOME=.",
        "GIT_DIR=.git",
        "GIT_CONFIG_PARAMETERS=\"'core.fsmonitor=touch pwn'\"",
        "FCEDIT='touch pwn'",
        "VISUAL='touch pwn'",
    ),
)
_REDIRECTIONS = (
    *(
        "> out.txt",
        ">> f",
        ">| f",
        "<> pwn",
        "&> pwn",
        "2> pwn",
        "2>&1",
        "> /dev/null",
        "2>/dev/null",
        "< f",
        "<<< 'touch pwn'",
        "> ~/.bashrc",
    ),
    *(
        "| tee pwn",
        "| sh",
        "| bash",
        "| xargs touch",
        "| head -1",
        "| sort -o pwn",
        "| wc -l",
        "| cat",
        "| sed 'w pwn'",
        "| awk '{print > \"pwn\"}'",
        "| dd of=pwn",
    ),
    *(
        "3> pwn",
        ">& pwn",
        "{fd}> pwn",
        "> $(echo pwn)",
        '> "$HOME/pwn"',
        "| while read x; do touch pwn; done",
        "| xargs -I{} sh -c 'touch pwn'",
        "| git apply",
    ),
)
_JOINTS = (" ; ", " && ", " || ", " | ", "\n", " & ", " |& ")

Mutation = Callable[[random.Random, str, Sequence[str]], str]


def _parts(command: str) -> tuple[list[str], list[int]]:
    parts = tokens(command)
    return parts, [index for index, part in enumerate(parts) if part.strip() and part[0] not in ";|&()<>"]


def _quote(rng: random.Random, command: str, _others: Sequence[str]) -> str:
    parts, places = _parts(command)
    place = rng.choice(places)
    word = parts[place]
    if word[0] in "'\"$" or "'" in word or "\\" in word:
        return command
    cut = rng.randrange(len(word))
    hexed = "".join(f"\\x{byte:02x}" for byte in word.encode())
    forms = (
        f"'{word}'",
        f'"{word}"',
        f"$'{hexed}'",
        f"\\{word}",
        f"{word[:cut]}''{word[cut:]}",
        f'{word[:cut]}"{word[cut:]}"',
        f"$'{word}'",
    )
    parts[place] = rng.choice(forms)
    return "".join(parts)


def _abbreviate(rng: random.Random, command: str, _others: Sequence[str]) -> str:
    parts, places = _parts(command)
    long = [place for place in places if parts[place].startswith("--") and len(parts[place]) > 4]
    if not long:
        return _swap(rng, command, _others)
    place = rng.choice(long)
    name, equals, value = parts[place].partition("=")
    parts[place] = name[: rng.randrange(3, len(name) + 1)] + (equals + value if rng.random() < 0.8 else " " + value)
    return "".join(parts)


def _swap(rng: random.Random, command: str, _others: Sequence[str]) -> str:
    parts, places = _parts(command)
    one, two = rng.choice(places), rng.choice(places)
    parts[one], parts[two] = parts[two], parts[one]
    return "".join(parts)


def _move(rng: random.Random, command: str, _others: Sequence[str]) -> str:
    parts, places = _parts(command)
    word = parts.pop(rng.choice(places))
    parts.insert(rng.randrange(len(parts) + 1), f" {word} ")
    return "".join(parts)


def _insert(rng: random.Random, command: str, _others: Sequence[str]) -> str:
    parts, places = _parts(command)
    place = rng.choice(places)
    value = rng.choice(VALUES)
    shown = value if rng.random() < 0.4 else "'" + value.replace("'", "'\\''") + "'"
    glue = rng.choice((" ", " ", " ", "=", ""))
    parts[place] = f"{parts[place]}{glue}{shown}"
    return "".join(parts)


def _replace(rng: random.Random, command: str, _others: Sequence[str]) -> str:
    parts, places = _parts(command)
    value = rng.choice(VALUES)
    parts[rng.choice(places)] = value if rng.random() < 0.4 else "'" + value.replace("'", "'\\''") + "'"
    return "".join(parts)


def _drop(rng: random.Random, command: str, _others: Sequence[str]) -> str:
    parts, places = _parts(command)
    del parts[rng.choice(places)]
    return "".join(parts)


def _cross(rng: random.Random, command: str, others: Sequence[str]) -> str:
    """Insert a run of words of another command."""
    parts, places = _parts(command)
    donor = [part for part in tokens(rng.choice(others)) if part.strip()]
    if not donor:
        return command
    start = rng.randrange(len(donor))
    run = donor[start : start + rng.choice((1, 1, 2, 3))]
    place = rng.choice(places)
    parts[place] = f"{parts[place]} {' '.join(run)}"
    return "".join(parts)


def _wrap(rng: random.Random, command: str, _others: Sequence[str]) -> str:
    inner = rng.choice(_DEEDS) if rng.random() < 0.3 else command
    return rng.choice(_WRAPPERS).format(inner)


def _assign(rng: random.Random, command: str, _others: Sequence[str]) -> str:
    assignment = rng.choice(_ASSIGNMENTS)
    return f"export {assignment}; {command}" if rng.random() < 0.3 else f"{assignment} {command}"


def _redirect(rng: random.Random, command: str, _others: Sequence[str]) -> str:
    return f"{command} {rng.choice(_REDIRECTIONS)}"


def _join(rng: random.Random, command: str, others: Sequence[str]) -> str:
    other = rng.choice(_DEEDS) if rng.random() < 0.3 else rng.choice(others)
    pair = (command, other) if rng.random() < 0.5 else (other, command)
    return rng.choice(_JOINTS).join(pair)


def _variable(rng: random.Random, command: str, _others: Sequence[str]) -> str:
    parts, places = _parts(command)
    place = rng.choice(places)
    word, parts[place] = parts[place], rng.choice(("$v", "${v}", '"$v"', "${v:-x}", "${!n}", "${v%x}", "${v[0]}"))
    return f"v={word} n=v; {''.join(parts)}"


MUTATIONS: tuple[Mutation, ...] = (
    *(_quote, _abbreviate, _swap, _move, _insert, _insert, _insert, _replace, _replace, _drop, _cross, _cross, _cross),
    *(_wrap, _wrap, _assign, _redirect, _join, _variable),
)


def mutate(rng: random.Random, command: str, others: Sequence[str]) -> str:
    """Return a command changed in one to three ways."""
    for _ in range(rng.choice((1, 1, 2, 2, 3))):
        if not _parts(command)[1]:
            break
        command = rng.choice(MUTATIONS)(rng, command, others)
    return command
