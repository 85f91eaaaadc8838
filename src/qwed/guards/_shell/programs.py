"""What each program does with its words: the tables the shell guard reads."""

from qwed.guards._shell.options import Program
from qwed.words import EffectKind

_READ = Program(free=True)
_TALK = Program(effect=None, free=True)
_HELP = frozenset({"--help", "--version"})


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split()) | _HELP


_GREP = Program(
    free=True,
    valued="eABCmdD",
    long_valued=_words("--include --exclude --exclude-dir --max-count --context --after-context --before-context")
    | _words("--regexp --color --colour --binary-files --label"),
    reads=frozenset({"-f", "--file", "--exclude-from"}),
    text_first=True,
)
_RG = Program(
    flags="abcFhHiIlLnNopPqsSuUvVwxz0",
    valued="eABCmgtTjMdr",
    words=_words(
        """
        --files --hidden --no-ignore --json --count --count-matches --files-with-matches --ignore-case --line-number
        --multiline --no-heading --heading --only-matching --pcre2 --smart-case --stats --type-list --vimgrep --trim
        --word-regexp --fixed-strings --invert-match --no-filename --with-filename --null --pretty --follow --debug
        --column --files-without-match --passthru --text --unrestricted --sort --sortr --color --colors --quiet
        --no-messages --no-config --no-line-number --crlf --block-buffered --line-buffered --max-columns-preview
        --case-sensitive --line-regexp --no-ignore-vcs --multiline-dotall --byte-offset --one-file-system
        """
    ),
    long_valued=_words(
        """
        --glob --iglob --type --type-not --max-count --max-depth --context --after-context --before-context --regexp
        --replace --threads --encoding --max-columns --max-filesize --engine
        """
    ),
    reads=frozenset({"-f", "--file", "--ignore-file"}),
    text_first=True,
    default=".",
    deep=frozenset(),
)
_SORT = Program(
    flags="bcCdfghiMmnRrsuVz",
    valued="ktS",
    words=_words(
        """
        --reverse --numeric-sort --unique --ignore-case --human-numeric-sort --version-sort --stable --check --merge
        --general-numeric-sort --random-sort --month-sort --zero-terminated --dictionary-order --ignore-leading-blanks
        --ignore-nonprinting --parallel
        """
    ),
    long_valued=_words("--key --field-separator --sort --buffer-size"),
    reads=frozenset({"--files0-from"}),
    writes=frozenset({"-o", "--output"}),
)

_FREE_READERS = """
cat tac wc stat du df readlink realpath od hexdump strings comm join paste cmp fold expand unexpand fmt md5sum sha1sum
sha224sum sha256sum sha384sum sha512sum b2sum cksum sum md5 shasum b3sum colordiff look tsort base64 base32
basenc zcat bzcat xzcat zstdcat gzcat zless bzless lsattr getfacl readelf size ldd addr2line c++filt tokei ffprobe
pdfinfo hexyl namei getcap pstree dircolors fortune
"""
_FREE_TALKERS = """
echo printf basename dirname seq which whereis true false pwd whoami uname uptime free nproc arch groups tty lscpu w who
users logname id cal ncal lsblk lsusb lspci lsmod lshw blkid vmstat iostat mpstat numactl
getconf locale localectl sleep tput clear reset type hash : test [ expr factor dc numfmt shuf wait jobs times
sensors acpi top htop atop mesg ulimit umask runlevel lsb_release systemd-analyze netstat ss
ipcs sync lsns lslogins tzselect toilet banner getopt
getopts help stty tldr shift return exit break continue logout compgen complete bind suspend  dirs caller fg bg disown
tr   rev mdfind  sw_vers infocmp  toe  lsipc lsmem findmnt  pgrep pidof  apropos
whatis    dpkg-architecture  ts
"""

_DIFF_PROGRAM = frozenset({"--diff-program"})
_SELDOM: dict[str, Program] = {
    "bc": Program(free=True, valued="e", long_valued=_words("--expression")),
    "sdiff": Program(free=True, valued="wI", writes=frozenset({"-o", "--output"}), runs=_DIFF_PROGRAM, most=2),
    "diff3": Program(free=True, valued="L", runs=_DIFF_PROGRAM),
    "cloc": Program(
        free=True,
        long_valued=_words("--exclude-dir --include-lang --exclude-lang --include-ext --exclude-ext --match-f"),
        reads=frozenset({"--list-file", "--exclude-list-file", "--read-lang-def", "--force-lang-def", "--config"}),
        writes=frozenset({"--report-file", "--out", "--counted", "--ignored", "--found", "--write-lang-def", "--sdir"}),
        runs=frozenset({"--extract-with", "--diff-list-file"}),
    ),
    "scc": Program(free=True, valued="fis", writes=frozenset({"-o", "--output"}), default="."),
    **dict.fromkeys(("nm", "objdump"), Program(free=True, runs=frozenset({"--plugin"}))),
    "pdftotext": Program(free=True, valued="flrxyWHep", last=EffectKind.WRITE, least=2),
    "mediainfo": Program(free=True, writes=frozenset({"--LogFile"})),
    "identify": Program(free=True, runs=frozenset({"-define"})),
    "last": Program(effect=None, free=True, valued="nst", reads=frozenset({"-f", "--file"})),
    "lastlog": Program(effect=None, free=True, flags="", valued="but", reads=frozenset({"-R", "--root"})),
    "dmidecode": Program(effect=None, free=True, writes=frozenset({"--dump-bin"}), reads=frozenset({"--from-dump"})),
    "sar": Program(effect=None, free=True, writes=frozenset({"-o"}), reads=frozenset({"-f"})),
    "figlet": Program(effect=None, free=True, valued="wm", reads=frozenset({"-f", "-d", "-C"})),
    "units": Program(effect=None, free=True, reads=frozenset({"-f", "--file", "-L", "--log"})),
    "cowsay": Program(effect=None, free=True, valued="eTW", runs=frozenset({"-f"})),
    **dict.fromkeys(("neofetch", "fastfetch"), Program(effect=None, free=True, runs=frozenset({"--config", "-c"}))),
    "finger": Program(effect=None, free=True, also=(EffectKind.NETWORK,)),
    "nvidia-smi": Program(
        effect=None,
        flags="Lqx",
        valued="idl",
        words=_words("--query-gpu --format --list-gpus --query --query-compute-apps --loop --id --display --loop-ms"),
        writes=frozenset({"-f", "--filename"}),
    ),
}
"""Programs that look, with an option or two that do more."""

PROGRAMS: dict[str, Program] = {
    **dict.fromkeys(_FREE_READERS.split(), _READ),
    **dict.fromkeys(_FREE_TALKERS.split(), _TALK),
    "ls": Program(free=True, valued="ITw", default="."),
    **dict.fromkeys(("dir", "ll", "la", "l"), Program(free=True, default=".")),
    **_SELDOM,
    "iconv": Program(free=True, valued="ft", writes=frozenset({"-o", "--output"})),
    "vdir": Program(free=True, default="."),
    **dict.fromkeys(("exa", "eza", "lsd"), Program(free=True, valued="ILTs", default=".")),
    "cat": _READ,
    "stat": Program(free=True, valued="cf", long_valued=_words("--format --printf")),
    "head": Program(free=True, valued="nc", long_valued=_words("--lines --bytes")),
    "tail": Program(free=True, valued="ncs", long_valued=_words("--lines --bytes --pid --sleep-interval")),
    "du": Program(
        free=True,
        valued="dBt",
        long_valued=_words("--max-depth --exclude --block-size"),
        reads=frozenset({"--files0-from", "-X", "--exclude-from"}),
        default=".",
    ),
    "df": Program(free=True, valued="txB", effect=None),
    "wc": Program(free=True, reads=frozenset({"--files0-from"})),
    "file": Program(
        flags="bcdhiIkLnNprsSvzZ0",
        valued="eFP",
        words=_words("--brief --mime --mime-type --mime-encoding --dereference --no-dereference --keep-going --raw"),
        reads=frozenset({"-f", "-m", "--magic-file", "--files-from"}),
    ),
    "tree": Program(
        flags="adfilpshDFrtuvCnAcgJXqQNSUx",
        valued="LPI",
        words=_words("--dirsfirst --noreport --gitignore --prune --du --si --filelimit --charset --sort --matchdirs")
        | _words("--ignore-case --filesfirst --inodes --device --timefmt --metafirst"),
        default=".",
    ),
    "cut": Program(
        free=True, valued="bcdf", long_valued=_words("--delimiter --fields --characters --bytes --output-delimiter")
    ),
    "nl": Program(free=True, valued="bdfhilnsvw"),
    "od": Program(free=True, valued="AjNtw"),
    "hexdump": Program(free=True, valued="nse", reads=frozenset({"-f"})),
    "xxd": Program(flags="abEeipuCR", valued="cglsno", most=1),
    "strings": Program(free=True, valued="nets", long_valued=_words("--bytes --encoding --radix")),
    "fold": Program(free=True, valued="w"),
    "fmt": Program(free=True, valued="wpg"),
    "expand": Program(free=True, valued="t"),
    "unexpand": Program(free=True, valued="t"),
    "rev": _READ,
    "column": Program(
        free=True, valued="scoNHRTWEOn", long_valued=_words("--separator --table-columns --output-separator")
    ),
    "pr": Program(free=True, valued="hlowD"),
    "base64": Program(free=True, valued="w", long_valued=_words("--wrap"), writes=frozenset({"-o", "--output"})),
    "sort": _SORT,
    "uniq": Program(free=True, valued="fsw", long_valued=_words("--skip-fields --skip-chars --check-chars"), most=1),
    "diff": Program(
        free=True,
        valued="UCWIxFS",
        long_valued=_words("--unified --context --exclude --ignore-matching-lines --label --width"),
        reads=frozenset({"-X", "--exclude-from", "--from-file", "--to-file"}),
        least=1,
        most=2,
    ),
    "join": Program(free=True, valued="aejotv12"),
    "paste": Program(free=True, valued="d", long_valued=_words("--delimiters")),
    **dict.fromkeys(("grep", "egrep", "fgrep", "zgrep", "bzgrep", "xzgrep", "zegrep", "zfgrep"), _GREP),
    "pgrep": Program(effect=None, free=True),
    "rg": _RG,
    "ag": Program(
        free=True, valued="ABCmGp", runs=frozenset({"--pager"}), text_first=True, default=".", deep=frozenset()
    ),
    "ack": Program(
        flags="acfhHiIklLnoQrRsvwx1",
        valued="ABCmg",
        words=_words("--nocolor --color"),
        text_first=True,
        deep=frozenset(),
    ),
    **dict.fromkeys(
        ("bat", "batcat"),
        Program(
            flags="nApuf",
            valued="lrHm",
            words=_words(
                """
            --plain --number --paging --color --style --theme --line-range --language --no-pager --decorations
            """
            ),
        ),
    ),
    **dict.fromkeys(
        ("md5sum", "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum", "b2sum", "cksum", "md5"), _READ
    ),
    "shasum": Program(free=True, valued="a"),
    "jobs": Program(effect=None, flags="lnprs"),
    "shuf": Program(
        flags="ezr", valued="in", words=_words("--repeat --echo --head-count --input-range"), writes=frozenset({"-o"})
    ),
    "tr": Program(effect=None, free=True),
    "type": Program(effect=None, free=True),
    "hostname": Program(
        effect=None, flags="fisdIAay", words=_words("--fqdn --short --ip-address --all-ip-addresses"), most=0
    ),
    "lsof": Program(effect=None, free=True),
    "dmesg": Program(
        effect=None, flags="HTwxkLeurt", valued="lfn", words=_words("--human --ctime --level --follow --color")
    ),
    "xmllint": Program(
        flags="", words=_words("--noout --format --xpath --valid --recover --html --nonet --schema --noblanks --c14n")
    ),
    "exiftool": Program(flags="sSanGgjHte0123456789", writes=frozenset({"-w", "-o"})),
    "zcat": _READ,
    "zless": _READ,
    # What follows changes something.
    **dict.fromkeys(
        ("rm", "rmdir", "unlink", "shred", "srm", "trash", "trash-put", "rimraf", "wipe"),
        Program(
            effect=EffectKind.DELETE,
            free=True,
            valued="",
            long_valued=frozenset({"--iterations", "--size", "--random-source"}),
            least=1,
        ),
    ),
    "mv": Program(
        effect=EffectKind.WRITE,
        flags="bfinuvTZ",
        valued="S",
        words=_words("--force --no-clobber --verbose --interactive --update --backup --no-target-directory"),
        writes=frozenset({"-t", "--target-directory"}),
        least=1,
    ),
    "cp": Program(
        last=EffectKind.WRITE,
        flags="abdfHiLlnPpRrsTuvxcX",
        valued="S",
        words=_words(
            """
            --archive --force --recursive --no-clobber --verbose --preserve --update --parents --link --symbolic-link
            --backup --dereference --no-dereference --sparse --reflink --interactive --no-target-directory
            --no-preserve
            """
        ),
        writes=frozenset({"-t", "--target-directory"}),
        least=1,
        deep=frozenset({"-r", "-R", "-a", "--recursive", "--archive"}),
    ),
    "ln": Program(
        effect=EffectKind.WRITE,
        flags="bfinPrsTvLF",
        words=_words("--symbolic --force --relative --verbose --no-dereference"),
        writes=frozenset({"-t"}),
        least=1,
    ),
    "touch": Program(
        effect=EffectKind.WRITE,
        flags="acmhf",
        valued="dt",
        words=_words("--no-create --date --time"),
        reads=frozenset({"-r", "--reference"}),
        least=1,
    ),
    "mkdir": Program(
        effect=EffectKind.WRITE, flags="pvZ", valued="m", words=_words("--parents --mode --verbose"), least=1
    ),
    "mkfifo": Program(effect=EffectKind.WRITE, flags="Z", valued="m", words=_HELP, least=1),
    "mktemp": Program(effect=None, free=True, default="$TMPDIR", also=(EffectKind.WRITE,)),
    "tee": Program(effect=EffectKind.WRITE, flags="aip", words=_words("--append --ignore-interrupts --output-error")),
    "sponge": Program(effect=EffectKind.WRITE, flags="a"),
    "truncate": Program(
        effect=EffectKind.WRITE,
        flags="co",
        valued="s",
        words=_words("--size --no-create"),
        reads=frozenset({"-r"}),
        least=1,
    ),
    "fallocate": Program(effect=EffectKind.WRITE, flags="cdinpvxz", valued="lo", words=_words("--length"), least=1),
    "install": Program(
        last=EffectKind.WRITE,
        flags="bcCdDpsTvZ",
        valued="gmoS",
        words=_words("--mode --owner --group --directory"),
        writes=frozenset({"-t"}),
        also=(EffectKind.ADMIN,),
    ),
    "split": Program(
        free=True,
        valued="abClnt",
        last=EffectKind.WRITE,
        runs=frozenset({"--filter"}),
        also=(EffectKind.WRITE, EffectKind.READ),
    ),
    "csplit": Program(
        free=True, valued="bn", writes=frozenset({"-f", "--prefix"}), text_first=False, also=(EffectKind.WRITE,)
    ),
    "patch": Program(
        free=True,
        valued="pBF",
        effect=EffectKind.WRITE,
        reads=frozenset({"-i", "--input"}),
        writes=frozenset({"-d", "--directory", "-o", "--output", "-r", "--reject-file"}),
        also=(EffectKind.WRITE,),
    ),
    "dos2unix": Program(effect=EffectKind.WRITE, free=True),
    "unix2dos": Program(effect=EffectKind.WRITE, free=True),
    "printenv": Program(effect=EffectKind.SECRET, flags="0", default="environment"),
    "history": Program(effect=EffectKind.SECRET, free=True, default="history"),
    "fc": Program(effect=EffectKind.SECRET, free=True, default="history", also=(EffectKind.EXECUTE,)),
    "xclip": Program(effect=EffectKind.SECRET, free=True, default="clipboard"),
    "pbpaste": Program(effect=EffectKind.SECRET, free=True, default="clipboard"),
    **dict.fromkeys(
        ("screencapture", "scrot", "import", "ffmpeg", "arecord", "convert"),
        Program(effect=EffectKind.WRITE, free=True),
    ),
    **dict.fromkeys(
        ("tcpdump", "tshark", "dumpcap", "wireshark", "strace-log-merge"),
        Program(effect=None, free=True, also=(EffectKind.ADMIN, EffectKind.SECRET, EffectKind.NETWORK)),
    ),
}
