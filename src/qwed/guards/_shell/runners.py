"""Programs that are known by name alone: those that change the system, and those that run code of the project."""

from qwed.guards._shell.model import names_in

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
"""They run code of the project, or whatever they are given: critical, and for trust to decide."""
