"""Tables of known programs: their options and their effects on operands."""

from qwed.guards._shell.command_model import names_in
from qwed.guards._shell.options import ProgramSpec
from qwed.model import EffectKind

_READ = ProgramSpec(free=True)
_PRINT = ProgramSpec(effect=None, free=True)
_HELP = frozenset({"--help", "--version"})


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split()) | _HELP


_GREP = ProgramSpec(
    free=True,
    valued="eABCmdD",
    long_valued=_words("--include --exclude --exclude-dir --max-count --context --after-context --before-context")
    | _words("--regexp --color --colour --binary-files --label"),
    reads=frozenset({"-f", "--file", "--exclude-from"}),
    text_first=True,
)
_RG = ProgramSpec(
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
    recursive_options=frozenset(),
)
_SORT = ProgramSpec(
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
_FREE_PRINTERS = """
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
_MOSTLY_READERS: dict[str, ProgramSpec] = {
    "bc": ProgramSpec(free=True, valued="e", long_valued=_words("--expression")),
    "sdiff": ProgramSpec(free=True, valued="wI", writes=frozenset({"-o", "--output"}), runs=_DIFF_PROGRAM, most=2),
    "diff3": ProgramSpec(free=True, valued="L", runs=_DIFF_PROGRAM),
    "cloc": ProgramSpec(
        free=True,
        long_valued=_words("--exclude-dir --include-lang --exclude-lang --include-ext --exclude-ext --match-f"),
        reads=frozenset({"--list-file", "--exclude-list-file", "--read-lang-def", "--force-lang-def", "--config"}),
        writes=frozenset({"--report-file", "--out", "--counted", "--ignored", "--found", "--write-lang-def", "--sdir"}),
        runs=frozenset({"--extract-with", "--diff-list-file"}),
    ),
    "scc": ProgramSpec(free=True, valued="fis", writes=frozenset({"-o", "--output"}), default="."),
    **dict.fromkeys(("nm", "objdump"), ProgramSpec(free=True, runs=frozenset({"--plugin"}))),
    "pdftotext": ProgramSpec(free=True, valued="flrxyWHep", last=EffectKind.WRITE, least=2),
    "mediainfo": ProgramSpec(free=True, writes=frozenset({"--LogFile"})),
    "identify": ProgramSpec(free=True, runs=frozenset({"-define"})),
    "last": ProgramSpec(effect=None, free=True, valued="nst", reads=frozenset({"-f", "--file"})),
    "lastlog": ProgramSpec(effect=None, free=True, flags="", valued="but", reads=frozenset({"-R", "--root"})),
    "dmidecode": ProgramSpec(
        effect=None, free=True, writes=frozenset({"--dump-bin"}), reads=frozenset({"--from-dump"})
    ),
    "sar": ProgramSpec(effect=None, free=True, writes=frozenset({"-o"}), reads=frozenset({"-f"})),
    "figlet": ProgramSpec(effect=None, free=True, valued="wm", reads=frozenset({"-f", "-d", "-C"})),
    "units": ProgramSpec(effect=None, free=True, reads=frozenset({"-f", "--file", "-L", "--log"})),
    "cowsay": ProgramSpec(effect=None, free=True, valued="eTW", runs=frozenset({"-f"})),
    **dict.fromkeys(("neofetch", "fastfetch"), ProgramSpec(effect=None, free=True, runs=frozenset({"--config", "-c"}))),
    "finger": ProgramSpec(effect=None, free=True, also=(EffectKind.NETWORK,)),
    "nvidia-smi": ProgramSpec(
        effect=None,
        flags="Lqx",
        valued="idl",
        words=_words("--query-gpu --format --list-gpus --query --query-compute-apps --loop --id --display --loop-ms"),
        writes=frozenset({"-f", "--filename"}),
    ),
}
"""Programs that only read, except with one or two of their options."""

PROGRAMS: dict[str, ProgramSpec] = {
    **dict.fromkeys(_FREE_READERS.split(), _READ),
    **dict.fromkeys(_FREE_PRINTERS.split(), _PRINT),
    "ls": ProgramSpec(free=True, valued="ITw", default="."),
    **dict.fromkeys(("dir", "ll", "la", "l"), ProgramSpec(free=True, default=".")),
    **_MOSTLY_READERS,
    "iconv": ProgramSpec(free=True, valued="ft", writes=frozenset({"-o", "--output"})),
    "vdir": ProgramSpec(free=True, default="."),
    **dict.fromkeys(("exa", "eza", "lsd"), ProgramSpec(free=True, valued="ILTs", default=".")),
    "cat": _READ,
    "stat": ProgramSpec(free=True, valued="cf", long_valued=_words("--format --printf")),
    "head": ProgramSpec(free=True, valued="nc", long_valued=_words("--lines --bytes")),
    "tail": ProgramSpec(free=True, valued="ncs", long_valued=_words("--lines --bytes --pid --sleep-interval")),
    "du": ProgramSpec(
        free=True,
        valued="dBt",
        long_valued=_words("--max-depth --exclude --block-size"),
        reads=frozenset({"--files0-from", "-X", "--exclude-from"}),
        default=".",
    ),
    "df": ProgramSpec(free=True, valued="txB", effect=None),
    "wc": ProgramSpec(free=True, reads=frozenset({"--files0-from"})),
    "file": ProgramSpec(
        flags="bcdhiIkLnNprsSvzZ0",
        valued="eFP",
        words=_words("--brief --mime --mime-type --mime-encoding --dereference --no-dereference --keep-going --raw"),
        reads=frozenset({"-f", "-m", "--magic-file", "--files-from"}),
    ),
    "tree": ProgramSpec(
        flags="adfilpshDFrtuvCnAcgJXqQNSUx",
        valued="LPI",
        words=_words("--dirsfirst --noreport --gitignore --prune --du --si --filelimit --charset --sort --matchdirs")
        | _words("--ignore-case --filesfirst --inodes --device --timefmt --metafirst"),
        default=".",
    ),
    "cut": ProgramSpec(
        free=True, valued="bcdf", long_valued=_words("--delimiter --fields --characters --bytes --output-delimiter")
    ),
    "nl": ProgramSpec(free=True, valued="bdfhilnsvw"),
    "od": ProgramSpec(free=True, valued="AjNtw"),
    "hexdump": ProgramSpec(free=True, valued="nse", reads=frozenset({"-f"})),
    "xxd": ProgramSpec(flags="abEeipuCR", valued="cglsno", most=1),
    "strings": ProgramSpec(free=True, valued="nets", long_valued=_words("--bytes --encoding --radix")),
    "fold": ProgramSpec(free=True, valued="w"),
    "fmt": ProgramSpec(free=True, valued="wpg"),
    "expand": ProgramSpec(free=True, valued="t"),
    "unexpand": ProgramSpec(free=True, valued="t"),
    "rev": _READ,
    "column": ProgramSpec(
        free=True, valued="scoNHRTWEOn", long_valued=_words("--separator --table-columns --output-separator")
    ),
    "pr": ProgramSpec(free=True, valued="hlowD"),
    "base64": ProgramSpec(free=True, valued="w", long_valued=_words("--wrap"), writes=frozenset({"-o", "--output"})),
    "sort": _SORT,
    "uniq": ProgramSpec(
        free=True, valued="fsw", long_valued=_words("--skip-fields --skip-chars --check-chars"), most=1
    ),
    "diff": ProgramSpec(
        free=True,
        valued="UCWIxFS",
        long_valued=_words("--unified --context --exclude --ignore-matching-lines --label --width"),
        reads=frozenset({"-X", "--exclude-from", "--from-file", "--to-file"}),
        least=1,
        most=2,
    ),
    "join": ProgramSpec(free=True, valued="aejotv12"),
    "paste": ProgramSpec(free=True, valued="d", long_valued=_words("--delimiters")),
    **dict.fromkeys(("grep", "egrep", "fgrep", "zgrep", "bzgrep", "xzgrep", "zegrep", "zfgrep"), _GREP),
    "pgrep": ProgramSpec(effect=None, free=True),
    "rg": _RG,
    "ag": ProgramSpec(
        free=True,
        valued="ABCmGp",
        runs=frozenset({"--pager"}),
        text_first=True,
        default=".",
        recursive_options=frozenset(),
    ),
    "ack": ProgramSpec(
        flags="acfhHiIklLnoQrRsvwx1",
        valued="ABCmg",
        words=_words("--nocolor --color"),
        text_first=True,
        recursive_options=frozenset(),
    ),
    **dict.fromkeys(
        ("bat", "batcat"),
        ProgramSpec(
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
    "shasum": ProgramSpec(free=True, valued="a"),
    "jobs": ProgramSpec(effect=None, flags="lnprs"),
    "shuf": ProgramSpec(
        flags="ezr", valued="in", words=_words("--repeat --echo --head-count --input-range"), writes=frozenset({"-o"})
    ),
    "tr": ProgramSpec(effect=None, free=True),
    "type": ProgramSpec(effect=None, free=True),
    "hostname": ProgramSpec(
        effect=None, flags="fisdIAay", words=_words("--fqdn --short --ip-address --all-ip-addresses"), most=0
    ),
    "lsof": ProgramSpec(effect=None, free=True),
    "dmesg": ProgramSpec(
        effect=None, flags="HTwxkLeurt", valued="lfn", words=_words("--human --ctime --level --follow --color")
    ),
    "xmllint": ProgramSpec(
        flags="", words=_words("--noout --format --xpath --valid --recover --html --nonet --schema --noblanks --c14n")
    ),
    "exiftool": ProgramSpec(flags="sSanGgjHte0123456789", writes=frozenset({"-w", "-o"})),
    "zcat": _READ,
    "zless": _READ,
    # The following programs change something.
    **dict.fromkeys(
        ("rm", "rmdir", "unlink", "shred", "srm", "trash", "trash-put", "rimraf", "wipe"),
        ProgramSpec(
            effect=EffectKind.DELETE,
            free=True,
            valued="",
            long_valued=frozenset({"--iterations", "--size", "--random-source"}),
            least=1,
        ),
    ),
    "mv": ProgramSpec(
        effect=EffectKind.WRITE,
        flags="bfinuvTZ",
        valued="S",
        words=_words("--force --no-clobber --verbose --interactive --update --backup --no-target-directory"),
        writes=frozenset({"-t", "--target-directory"}),
        least=1,
    ),
    "cp": ProgramSpec(
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
        recursive_options=frozenset({"-r", "-R", "-a", "--recursive", "--archive"}),
    ),
    "ln": ProgramSpec(
        effect=EffectKind.WRITE,
        flags="bfinPrsTvLF",
        words=_words("--symbolic --force --relative --verbose --no-dereference"),
        writes=frozenset({"-t"}),
        least=1,
    ),
    "touch": ProgramSpec(
        effect=EffectKind.WRITE,
        flags="acmhf",
        valued="dt",
        words=_words("--no-create --date --time"),
        reads=frozenset({"-r", "--reference"}),
        least=1,
    ),
    "mkdir": ProgramSpec(
        effect=EffectKind.WRITE, flags="pvZ", valued="m", words=_words("--parents --mode --verbose"), least=1
    ),
    "mkfifo": ProgramSpec(effect=EffectKind.WRITE, flags="Z", valued="m", words=_HELP, least=1),
    "mktemp": ProgramSpec(effect=None, free=True, default="$TMPDIR", also=(EffectKind.WRITE,)),
    "tee": ProgramSpec(
        effect=EffectKind.WRITE, flags="aip", words=_words("--append --ignore-interrupts --output-error")
    ),
    "sponge": ProgramSpec(effect=EffectKind.WRITE, flags="a"),
    "truncate": ProgramSpec(
        effect=EffectKind.WRITE,
        flags="co",
        valued="s",
        words=_words("--size --no-create"),
        reads=frozenset({"-r"}),
        least=1,
    ),
    "fallocate": ProgramSpec(effect=EffectKind.WRITE, flags="cdinpvxz", valued="lo", words=_words("--length"), least=1),
    "install": ProgramSpec(
        last=EffectKind.WRITE,
        flags="bcCdDpsTvZ",
        valued="gmoS",
        words=_words("--mode --owner --group --directory"),
        writes=frozenset({"-t"}),
        also=(EffectKind.ADMIN,),
    ),
    "split": ProgramSpec(
        free=True,
        valued="abClnt",
        last=EffectKind.WRITE,
        runs=frozenset({"--filter"}),
        also=(EffectKind.WRITE, EffectKind.READ),
    ),
    "csplit": ProgramSpec(
        free=True, valued="bn", writes=frozenset({"-f", "--prefix"}), text_first=False, also=(EffectKind.WRITE,)
    ),
    "patch": ProgramSpec(
        free=True,
        valued="pBF",
        effect=EffectKind.WRITE,
        reads=frozenset({"-i", "--input"}),
        writes=frozenset({"-d", "--directory", "-o", "--output", "-r", "--reject-file"}),
        also=(EffectKind.WRITE,),
    ),
    "dos2unix": ProgramSpec(effect=EffectKind.WRITE, free=True),
    "unix2dos": ProgramSpec(effect=EffectKind.WRITE, free=True),
    "printenv": ProgramSpec(effect=EffectKind.SECRET, flags="0", default="environment"),
    "history": ProgramSpec(effect=EffectKind.SECRET, free=True, default="history"),
    "fc": ProgramSpec(effect=EffectKind.SECRET, free=True, default="history", also=(EffectKind.EXECUTE,)),
    "xclip": ProgramSpec(effect=EffectKind.SECRET, free=True, default="clipboard"),
    "pbpaste": ProgramSpec(effect=EffectKind.SECRET, free=True, default="clipboard"),
    **dict.fromkeys(
        ("screencapture", "scrot", "import", "ffmpeg", "arecord", "convert"),
        ProgramSpec(effect=EffectKind.WRITE, free=True),
    ),
    **dict.fromkeys(
        ("tcpdump", "tshark", "dumpcap", "wireshark", "strace-log-merge"),
        ProgramSpec(effect=None, free=True, also=(EffectKind.ADMIN, EffectKind.SECRET, EffectKind.NETWORK)),
    ),
}

ADMINISTRATION = names_in("""
    passwd chpasswd chown chmod chgrp chattr setfacl setcap visudo vipw useradd userdel usermod groupadd groupdel
    groupmod adduser deluser addgroup delgroup gpasswd newgrp chsh chfn chage umount swapoff swapon iptables ip6tables
    nft ufw firewall-cmd iptables-restore iptables-save ebtables tc insmod rmmod modprobe depmod kexec reboot shutdown
    halt poweroff init telinit kill killall pkill skill xkill renice taskset mkfs fdisk parted sfdisk cfdisk gdisk
    sgdisk mkswap wipefs losetup blkdiscard hdparm badblocks debugfs tune2fs resize2fs e2fsck fsck xfs_repair lvremove
    vgremove pvremove lvcreate vgcreate pvcreate mdadm cryptsetup zpool zfs btrfs dmsetup hwclock update-rc.d
    chkconfig ldconfig auditctl aureport setenforce semanage setsebool restorecon apparmor_parser aa-disable
    update-alternatives dpkg rpm dpkg-reconfigure grub-install update-grub efibootmgr bootctl mknod pivot_root nsenter
    setpriv capsh runuser sg start-stop-daemon rc-service rc-update initctl launchctl dscl spctl csrutil nvram pmset
    networksetup scutil systemsetup tccutil defaults kadmin smbpasswd realm authconfig pam-auth-update logrotate
    rsyslogd sysrq ipmitool flashrom sshd fwupdmgr brctl ovs-vsctl wg wg-quick openvpn iwconfig iw rfkill macchanger
    ethtool cgcreate cgexec cgclassify machinectl portablectl homectl ausearch faillock pam_tally2 logger wall write
    sysctl route usermod ntpdate chronyc killall5 eject setterm loadkeys tunctl vconfig xhost
    """)

RUNNERS = names_in("""
    make gmake cmake ninja meson bazel bazelisk buck buck2 gradle gradlew mvn mvnw ant sbt scons rake tox nox pytest
    py.test unittest coverage hatch pdm flit invoke fab just task gcc g++ cc c++ clang clang++ ld as ar gfortran nasm
    rustc javac java javap jshell kotlinc kotlin scala scalac ghc runghc stack cabal ocaml opam dune elixir mix iex
    erl rebar3 swift swiftc xcodebuild xcrun dotnet msbuild mono csc fsc tsc ts-node tsx esbuild webpack vite rollup
    parcel jest vitest mocha ava karma cypress playwright nyc eslint prettier stylelint standard biome oxlint ruff
    black isort flake8 pylint mypy pyright bandit pyflakes autopep8 yapf pre-commit sphinx-build mkdocs uvicorn
    gunicorn flask django-admin celery jupyter ipython alembic scrapy streamlit airflow dbt golangci-lint gofmt
    goimports staticcheck air dlv rustfmt clippy-driver wasm-pack trunk jekyll hugo rails rspec rubocop guard phpunit
    phpstan artisan symfony shellcheck shfmt hadolint yamllint ansible-lint markdownlint vale act lerna nx turbo rush
    ng next nuxt gatsby expo react-native storybook lefthook husky commitizen semantic-release goreleaser protoc buf
    flatc swig bison flex yacc m4 autoconf automake autoreconf libtoolize configure latex pdflatex xelatex lualatex
    bibtex biber pandoc dot graphviz asciidoctor gnuplot octave R Rscript julia matlab sage maxima ghci nasm
    qemu-system-x86_64 wine valgrind perf gdb lldb ltrace hyperfine ab wrk locust k6 vegeta siege stress stress-ng
    sysbench fio hydra john hashcat nikto sqlmap metasploit msfconsole msfvenom aircrack-ng gobuster ffuf dirb wpscan
    masscan nuclei amass subfinder responder crackmapexec impacket-secretsdump linpeas linpeas.sh mimikatz bloodhound
    chisel ngrok cloudflared xmrig minerd cpuminer ollama claude codex
    """)
"""Programs that run code of the project or of their arguments: critical, so the trust level decides."""
