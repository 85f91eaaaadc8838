"""Expansion of abbreviated long options: most programs accept any unambiguous prefix, the rules only full names."""

from qwed.guards._shell.command_model import Word, names_in
from qwed.guards._shell.options import expand_abbreviation

_RELEVANT: dict[str, frozenset[str]] = {
    "git": names_in(
        """
        --upload-pack --receive-pack --exec --ext-diff --textconv --open-files-in-pager --extcmd --output --template
        --output-directory --no-index --config --in-place --tree-filter --index-filter --msg-filter --env-filter
        --file --exclude-from --ignore-revs-file --contents --separate-git-dir --git-dir --work-tree --unsafe-paths
        --lost-found --delete --force --mirror --hard --edit --unset-all --replace-all --rename-section --remove-section
        """
    ),
    **dict.fromkeys(("man", "info"), names_in("--pager --html --config-file --gxditview --preprocessor --manpath")),
    **dict.fromkeys(
        ("less", "zmore", "pg"), names_in("--log-file --LOG-FILE --lesskey-file --lesskey-src --prompt --tag")
    ),
    **dict.fromkeys(
        ("wget", "wget2"),
        names_in(
            """
            --post-file --body-file --input-file --load-cookies --execute --use-askpass --config --output-document
            --directory-prefix --output-file --append-output --save-cookies --warc-file --hsts-file --private-key
            --certificate --ca-certificate
            """
        ),
    ),
    "env": names_in("--split-string --chdir --unset"),
    **dict.fromkeys(
        ("xargs", "parallel"), names_in("--arg-file --results --joblog --delimiter --max-args --max-procs")
    ),
    **dict.fromkeys(("time", "gtime"), names_in("--output")),
    **dict.fromkeys(("date", "gdate"), names_in("--file --reference --set --date")),
    **dict.fromkeys(("su", "runuser", "script", "flock"), names_in("--command")),
    **dict.fromkeys(("fd", "fdfind"), names_in("--exec --exec-batch --base-directory --search-path")),
    "split": names_in("--filter"),
}
_WHOLE: dict[str, frozenset[str]] = {
    "git": names_in("--text --force-with-lease --force-if-includes --no-index-version --unset --edit-description"),
    "env": names_in("--unset"),
}
"""Complete options that are prefixes of a relevant one."""


def expand_abbreviations(name: str, words: list[Word]) -> list[Word]:
    """Return the arguments of a program with the long options relevant to its rules written in full."""
    relevant = _RELEVANT.get(name)
    return (
        words if relevant is None else [_expand_word(word, relevant, _WHOLE.get(name, frozenset())) for word in words]
    )


def _expand_word(word: Word, relevant: frozenset[str], whole: frozenset[str]) -> Word:
    option, separator, value = word.text.partition("=")
    if not option.startswith("--") or option in whole:
        return word
    return word._replace(text=f"{expand_abbreviation(option, relevant, whole)}{separator}{value}")
