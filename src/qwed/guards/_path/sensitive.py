"""Paths known to hold secrets: keys, credentials, password stores, histories, process memory."""

import re
from fnmatch import fnmatchcase
from functools import lru_cache

# Every table is matched against the casefolded path with forward slashes.
_PLACES = (
    r"(?:/private)?/etc/(?:passwd|shadow|gshadow|sudoers|master\.passwd|security/opasswd|krb5\.keytab)(?:[-~.].*)?",
    r"(?:/private)?/etc/(?:sudoers\.d|ssl/private|pki/(?:tls/)?private|kubernetes|wireguard|rancher|vault\.d)(?:/.*)?",
    r"/etc/(?:letsencrypt/(?:live|archive|accounts)|openvpn|ipsec\.d/private|networkmanager/system-connections)(?:/.*)?",
    r"/etc/(?:ppp/(?:chap|pap)-secrets|ipsec\.secrets|ldap\.secret|pam_ldap\.secret|mysql/debian\.cnf|swanctl/private.*)",
    r"/etc/(?:postfix/sasl_passwd.*|exim4/passwd\.client|wpa_supplicant/.*\.conf|dovecot/private/.*|freeradius/.*users)",
    r"/etc/ssh/ssh_host_.*(?<!\.pub)",
    r"/etc/(?:msmtprc|fetchmailrc|rsyncd\.secrets|davfs2/secrets|cifs-utils/.*|samba/(?:smbpasswd|private/.*|.*\.tdb))",
    r"/etc/(?:postgresql/)?pgbouncer/userlist\.txt|/etc/(?:gitlab/gitlab-secrets\.json|gitlab-runner/config\.toml)",
    r"/etc/(?:opendkim/keys|dkimkeys|borgmatic|munge|cloudflared|ceph/.*\.keyring|grafana/grafana\.ini|pip\.conf)(?:/.*)?",
    r"/etc/(?:(?:bind|named)/)?rndc\.key|/etc/(?:libnss-ldap\.secret|nslcd\.conf|sssd/(?:.*/)?[^/]*\.conf|tinc/.*/rsa_key\.priv)",
    r"/var/lib/jenkins/(?:secrets(?:/.*)?|credentials\.xml|secret\.key.*)|/var/lib/tor/.*/hs_\w*secret_key",
    r"/var/lib/cloud/instances?/(?:.*/)?user-data\.txt.*|/var/lib/samba/private(?:/.*)?",
    r"/proc/(?:kcore|kallsyms|keys|[^/]+/(?:environ|mem|maps|smaps|cmdline|auxv|stack|syscall))",
    r"/dev/(?:mem|kmem|port|sd[a-z]\d*|hd[a-z]\d*|nvme.*|mmcblk.*|x?vd[a-z]\d*|dm-\d+|disk/(?!by-[a-z]+/?\Z).+|mapper/.+|r?disk\d.*)",
    r"(?:/var)?/run/(?:docker\.sock|podman/.*|crio/.*|containerd/.*|secrets(?:/.*)?|credentials(?:/.*)?)",
    r"/var/lib/(?:kubelet|docker|rancher|etcd|vault|mysql/mysql|sss/(?:db|secrets)|systemd/credential\.secret)(?:/.*)?",
    r".+/etc/(?:shadow|gshadow|sudoers|master\.passwd)(?:[-~.].*)?",
    r"/var/backups/(?:shadow|gshadow|passwd)\.bak|/var/db/(?:dslocal|shadow|sudo)(?:/.*)?|/var/spool/cron(?:/.*)?",
    r".*/windows/(?:system32/config|repair|syswow64/config)/(?:regback/)?(?:sam|system|security|software|default)(?:\..*)?",
    r".*/windows/(?:ntds/.*|(?:system32/)?panther/.*unattend.*|sysvol/.*/groups\.xml|system32/inetsrv/config/.*)",
    r".*/appdata/(?:roaming|local)/microsoft/(?:credentials|protect|vault|crypto|identitycache)(?:/.*)?",
    r".*/(?:inetpub/.*/)?(?:pagefile|hiberfil|swapfile)\.sys",
)
_DIRECTORIES = (
    "ssh(?!/(?:[^/]+\\.pub|known_hosts2?(?:\\.old)?)$)",
    "gnupg",
    "aws",
    "azure",
    "kube",
    "docker/(?:config\\.json|contexts|buildx/certs)",
    "oci",
    "aliyun",
    "bluemix",
    "snowflake",
    "snowsql",
    "password-store",
    "terraform\\.d",
    "qwed",
    "secrets",
    "vault",
    "electrum",
    "bitcoin",
    "ethereum",
    "monero",
    "gnome2/keyrings",
    "local/share/(?:keyrings|kwalletd)",
    "config/(?:gcloud|gh|hub|doctl|op|bitwarden(?: cli)?|rclone|heroku|linode-cli|solana|flyctl|keybase|age|sops)",
    "subversion/auth",
    "fly",
    "railway",
    "age",
    "sops",
    "putty",
    "tsh",
    "bundle/config",
    "pip/pip\\.conf",
    "step/(?:secrets|authorities)",
    "local/share/(?:jupyter/runtime|rbw|atuin/key)",
    "jupyter/jupyter_(?:notebook|server)_config\\.(?:py|json)",
    "config/(?:ngrok|msmtp|syncthing|vdirsyncer|himalaya|pip/pip\\.conf|pypoetry/auth\\.toml|composer/auth\\.json)",
    "config/(?:containers/auth\\.json|helm/registry|rbw|borg|restic|robo3t|filezilla|remmina|pgcli/history|netrc)",
    "purple",
)
_BROWSER_FILES = (
    r"login data(?: for account)?(?:-journal)?|cookies(?:\.sqlite|\.binarycookies)?|web data|local state"
    r"|logins\.json|key[34]\.db|signons\.sqlite|cert[89]\.db|formhistory\.sqlite|places\.sqlite"
)
_BROWSERS = (
    r"(?:\.mozilla|firefox|\.thunderbird|thunderbird|google-chrome|chromium|chrome|brave-browser|bravesoftware"
    r"|microsoft-edge|edge|safari|opera|vivaldi)"
)
_TREES = (
    r"/library/keychains(?:/|$)",
    r"/library/(?:cookies|messages)/",
    r"/(?:\.ethereum|\.?geth|ethereum)/keystore(?:/|$)",
    rf"/{_BROWSERS}/(?:.*/)?(?:{_BROWSER_FILES})$",
    r"/\.(?:m2/settings(?:-security)?\.xml|gradle/gradle\.properties|cargo/credentials(?:\.toml)?|gem/credentials)$",
    r"/\.(?:dbt/profiles\.yml|kaggle/kaggle\.json|composer/auth\.json|config/git/credentials|claude/\.credentials\.json)$",
    r"/\.?(?:cache/)?huggingface/(?:token|stored_tokens)$|/\.config/pulse/cookie$|/\.local/share/fish/fish_history$",
    r"/filezilla/(?:sitemanager|recentservers)\.xml$|/psreadline/consolehost_history\.txt$|/winscp\.ini$",
    # Tools keep what they log in with in a directory of their own below the home directory.
    r"/\.(?!git/|venv/|tox/|cache/|github/)[\w-]+/(?:[^/]+/){0,4}"
    r"(?:(?:.*[_.-])?(?:auth|oauth2?|tokens?|credentials?|cookies|session|sessions)(?:[_.-][\w-]+)?"
    r"(?:\.(?:json|toml|ya?ml|db|sqlite3?|txt))?|cookies)$",
    r"/\.(?:netlify|wrangler|supabase|codex|expo|now|railway|pulumi|circleci|travis|vercel|turbo|cloudflared|ngrok2?|firebase"
    r"|planetscale|doppler|stripe|hcloud|digitalocean|upctl|snyk|sonar|gemini|openai|aider|copilot|sentry|fastly|ibmcloud"
    r"|bluemix|cf|oci|aliyun|tccli|scw|exoscale|civo|vultr-cli|config/(?:netlify|wrangler|pulumi|stripe|hcloud|scw|ngrok"
    r"|github-copilot|configstore|vercel|exoscale|civo|gcloud|glab-cli|jira|sentry))/(?:[^/]+/){0,3}"
    r"(?:config|default|hosts|settings|profiles?|apps|auth)\.(?:json|toml|ya?ml|ini)$",
    r"/\.?ngrok2?(?:/ngrok)?\.ya?ml$|^(?:~|/root|/home/[^/]+|/users/[^/]+)/\.yarnrc(?:\.yml)?$",
    r"^(?!.*(?:locale|i18n|intl|lang|translation|message|test|fixture|mock|schema))(?:.*/)?auth\.json$",
    r"/\.(?:idea/(?:webservers|datasources\.local)\.xml|dbeaver[^/]*/.*credentials-config\.json|remmina/.*)$",
    r"/\.nuget/(?:nuget/)?nuget\.config$|/\.vercel/auth\.json$|/\.config/configstore/.*\.json$",
)
_HISTORIES = "bash|zsh|sh|ksh|ash|csh|python|psql|mysql|sqlite|node_repl|rediscli|irb|pry|mongo|scala|ghci|php|lua"
_WORDS = (
    r"(?:my[_-]?)?(?:passwords?|passwd|secrets?|creds?|credentials|api[_-]?(?:keys?|tokens?)|apikeys?|private[_-]?keys?"
    r"|master[_-]?(?:passwords?|key)|access[_-]?(?:keys?|tokens?)|account[_-]?keys?|root[_-]?keys?|accesskeys)"
)
_NAMES = (
    r"\.netrc|_netrc|\.authinfo|\.pgpass|pgpass\.conf|\.my\.cnf|\.mylogin\.cnf|\.npmrc|\.pypirc",
    r"\.git-credentials|\.htpasswd|\.dockercfg|\.dockerconfigjson|\.envrc|\.vault-token|\.vault_?pass(?:word)?(?:\.txt)?",
    r"vault_?pass(?:word)?\.txt|\.boto|\.s3cfg|\.databrickscfg|\.terraformrc|terraform\.rc|\.fetchmailrc|\.msmtprc",
    r"\.esmtprc|\.ftpconfig|\.remote-sync\.json|sftp(?:-config)?\.json|\.rhosts|\.shosts|\.k5login|\.xauthority|\.esd_auth",
    rf"\.(?:{_HISTORIES})_?history|\.histfile|\.dbshell|\.lesshst|\.viminfo|consolehost_history\.txt|fish_history",
    r"\.env(?:rc)?(?:[._-](?!(?:.*[._-])?(?:example|sample|template|dist|defaults?|tpl|schema)$).*)?",
    r"(?!(?:example|sample|template|dist|default)\.env$)(?:prod(?:uction)?|dev(?:elopment)?|staging|local|secrets?)\.env",
    r"id_(?:rsa|dsa|ecdsa|ed25519|xmss)(?:_sk)?(?!.*\.pub$).*|authorized_keys2?",
    r"wp-config\.php|(?:aws_?)?credentials|client_secrets?.*\.json|service[_-]?account.*\.json|serviceaccount.*\.json",
    r"application_default_credentials\.json|google-services-credentials\.json|gcp[_-]?(?:key|credentials).*\.json",
    r"firebase-adminsdk.*\.json|.*-firebase-adminsdk-.*\.json|credentials\.(?:yml\.enc|db)|access_tokens\.db",
    rf"{_WORDS}\.(?:txt|csv|tsv|json|ya?ml|toml|ini|env|conf|cfg|properties|xml|xlsx?|docx?|odt|db|sqlite3?|bak|enc)",
    r"kubeconfig(?:\.ya?ml)?|.*\.kubeconfig|k3s\.yaml|rclone\.conf|terraform\.tfvars(?:\.json)?|.*\.auto\.tfvars(?:\.json)?",
    r"secring\.gpg|trustdb\.gpg|pubring\.kbx|wallet\.(?:dat|json|aes\.json)|.*\.wallet|utc--\d{4}-.*|keystore\.json",
    r"ntuser\.(?:dat|man)|usrclass\.dat|ntds\.dit|sam\.(?:hive|save|bak)|system\.(?:hive|save)|unattend\.xml|autounattend\.xml|sysprep\.(?:inf|xml)",
    r"login data|logins\.json|key[34]\.db|cookies\.sqlite|signons\.sqlite|local state|\.erlang\.cookie",
    r"appsettings\.(?!(?:development|example|sample|template)\.)\w+\.json|local\.settings\.json|\.sentryclirc",
    r"application-(?:prod(?:uction)?|staging|secrets?)\.(?:ya?ml|properties)",
    r"\.dev\.vars(?:\..*)?|(?!(?:example|sample|template|dummy|test|mock|fake)[_-])[\w.-]+[_-](?:credentials?|creds)\.(?:json|ya?ml|toml|ini|csv)",
    r"(?!(?:example|sample|template|test|mock|sealed|external)[_-])[\w.-]+[_-]secrets?\.(?:json|toml|ini|env)",
    r"\.(?:mutt|neomutt|offlineimap|mbsync|getmail)rc|\.(?:smb|cifs|nas|smbclient)credentials|\.aws-credentials|kaggle\.json",
    r"smbpasswd|passdb\.tdb|secrets\.tdb|chap-secrets|pap-secrets|rndc\.key|jpserver-\d+\.json|nbserver-\d+\.json",
    r"jupyter_cookie_secret|secret_token\.rb|proftpdpasswd|\.tugboat|\.remmina|.*\.remmina|robomongo\.json",
    r"master\.key|encryption\.key|\.pgpass\.conf|keepass.*\.xml|kwallet.*|\.lastpass",
)
_ENDINGS = (
    ".pem",
    ".key",
    ".p12",
    ".pfx",
    ".pkcs12",
    ".p8",
    ".pk8",
    ".jks",
    ".jceks",
    ".bks",
    ".keystore",
    ".kdb",
    ".kdbx",
    ".psafe3",
    ".opvault",
    ".1pif",
    ".agilekeychain",
    ".keychain",
    ".keychain-db",
    ".kwl",
    ".ppk",
    ".keytab",
    ".tfstate",
    ".tfvars",
    ".agekey",
    ".ovpn",
    ".ccache",
    ".id_rsa",
    ".rsa",
    ".gpgkey",
    ".dit",
)
_COPY_ENDINGS = re.compile(
    r"(?:\.(?:bak|old|orig|copy|backup|save|swp|swo|tmp|\d{1,2})|~|[-_](?:old|bak|backup)|[. ]+)\Z"
)
# Certificates are public; files with these names do not hold private keys.
_PUBLIC = re.compile(
    r"(?:.*[._-])?(?:certs?|certificates?|cacerts?|ca[._-](?:bundle|certificates?|certs?|chain)|(?:full)?chain"
    r"|intermediate(?:[._-]ca)?|root[._-]ca|trusted[._-]certs?)\d*\.(?:pem|jks)"
    r"|(?:.*[._-])?(?:public(?:[._-]?key)?|pub)\.(?:pem|key)"
)
_PUBLIC_CHAIN = re.compile(r"/etc/letsencrypt/(?:live|archive)/[\w.-]+/(?:cert|chain|fullchain)\d*\.pem")

_PUBLIC_PLACES = ("/etc/ssl/certs/", "/usr/share/ca-certificates/", "/etc/pki/ca-trust/", "/etc/pki/tls/certs/")

_PLACE = re.compile("|".join(_PLACES))
_TREE = re.compile("|".join((rf"(?:^|/)\.(?:{'|'.join(_DIRECTORIES)})(?:/|$)", *_TREES)))
_NAME = re.compile("|".join(_NAMES))

_GLOB = re.compile(r"[*?\[]")
_GLOB_TARGETS = tuple(
    tuple(place.split("/"))
    for place in (
        "/etc/shadow",
        "/etc/passwd",
        "/etc/gshadow",
        "/etc/sudoers",
        "/etc/ssh/ssh_host_rsa_key",
        "/proc/self/environ",
        "/run/secrets/x",
        "/var/run/docker.sock",
        "/root/.ssh/id_rsa",
        "/proc/1/environ",
        "/home/user/.ssh/id_rsa",
        "~/.ssh/id_rsa",
        "~/.aws/credentials",
        "~/.bash_history",
        "~/.config/gh/hosts.yml",
        "/home/user/.config/gh/hosts.yml",
        "~/.docker/config.json",
    )
)
_GLOB_NAMES_TEXT = """
id_rsa id_ed25519 id_ecdsa .env .ssh .aws .kube .gnupg .netrc .pgpass .npmrc .bash_history .git-credentials .docker
authorized_keys credentials credentials.json wp-config.php shadow server.pem server.key wallet.dat secrets.yml .htpasswd
kubeconfig ntds.dit
"""
_GLOB_NAMES = tuple(_GLOB_NAMES_TEXT.split())
_MIN_LITERAL = 3
_MIN_UNLIKE = 2
"""Literal characters required for distinctive names: `.e*` and `id*` are meant to match them."""


_CLIMB = re.compile(r"\A(?:\.\./)+")


def is_sensitive(path: str) -> bool:
    """Return True if the normalised path is known to hold secrets, on case-sensitive and case-insensitive systems."""
    folded = path.casefold()
    if folded.startswith("env:"):
        return True
    if folded.startswith("../"):
        # The number of levels up is unknown; assume the file system root, which is the worst case.
        folded = "/" + _CLIMB.sub("", folded)
    if _PUBLIC_CHAIN.fullmatch(folded) or (folded.startswith(_PUBLIC_PLACES) and folded.endswith((".pem", ".crt"))):
        return False
    name = _plain_name(folded.rpartition("/")[2])
    if (name.endswith(_ENDINGS) or _NAME.fullmatch(name)) and not _PUBLIC.fullmatch(name):
        return True
    if _PLACE.fullmatch(folded) or _TREE.search(folded):
        return True
    return _GLOB.search(folded) is not None and _may_match_sensitive(folded)


def _plain_name(name: str) -> str:
    """Return the file name without a data stream and without the suffixes of copies."""
    name = name.partition(":")[0] or name
    for _ in range(3):
        shorter = _COPY_ENDINGS.sub("", name)
        if shorter in ("", name):
            return name
        name = shorter
    return name


@lru_cache(maxsize=256)
def _may_match_sensitive(pattern: str) -> bool:
    parts = pattern.split("/")
    if any(_matches(target, parts) for target in _GLOB_TARGETS):
        return True
    patterns = [(part, _literals(part)) for part in parts if _GLOB.search(part)]
    return any(
        literals >= (_MIN_UNLIKE if name.startswith((".", "id_")) else _MIN_LITERAL) and fnmatchcase(name, part)
        for part, literals in patterns[:8]
        for name in _GLOB_NAMES
    )


def _literals(part: str) -> int:
    """Return the number of characters of a pattern that identify the file, without its extension."""
    stem = part if part.startswith(".") else part.partition(".")[0]
    return len(stem) - sum(map(stem.count, "*?[]"))


def _matches(target: tuple[str, ...], parts: list[str]) -> bool:
    if len(target) != len(parts) or (target[0] == "~") != (parts[0] == "~"):
        # No pattern matches a home directory: `~` is expanded before patterns are.
        return False
    return all(map(fnmatchcase, target, parts))
