"""Long options written out: most programs take any beginning of one for the whole, and rules look for the whole."""

from qwed.guards._shell.model import Word, names_in
from qwed.guards._shell.options import in_full

_TELLING: dict[str, frozenset[str]] = {
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
"""Options that are whole, and begin one of those."""


def in_full_words(name: str, words: list[Word]) -> list[Word]:
    """The words of a program, with those long options written out that a rule would look for."""
    telling = _TELLING.get(name)
    return words if telling is None else [_written_out(word, telling, _WHOLE.get(name, frozenset())) for word in words]


def _written_out(word: Word, telling: frozenset[str], whole: frozenset[str]) -> Word:
    option, given, value = word.text.partition("=")
    if not option.startswith("--") or option in whole:
        return word
    return word._replace(text=f"{in_full(option, telling, whole)}{given}{value}")
