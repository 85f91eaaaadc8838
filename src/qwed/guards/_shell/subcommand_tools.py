"""Tools with subcommands (package managers, containers, clouds, services), and the effects of each subcommand."""

from typing import NamedTuple

from qwed.guards._shell.command_model import names_in
from qwed.model import EffectKind

_E = EffectKind
Kinds = tuple[EffectKind, ...]
INSTALL: Kinds = (_E.EXECUTE, _E.WRITE, _E.NETWORK)
_ADMIN_INSTALL: Kinds = (_E.ADMIN, *INSTALL)
_REMOTE_ADMIN: Kinds = (_E.ADMIN, _E.NETWORK, _E.EXECUTE)


class SubcommandTool(NamedTuple):
    """Read-only verbs, verbs that query another machine, and the effects of all others; `_` joins two verbs."""

    read_only_verbs: frozenset[str]
    network_verbs: frozenset[str] = frozenset()
    other: Kinds = (_E.EXECUTE,)
    installs: frozenset[str] = frozenset()
    without_verb: Kinds = ()
    """Effects without any verb."""


_ABOUT = names_in("help version --version --help -v -V -h -version --info")


def _read_only_tool(verbs: str = "", **rest: Kinds) -> SubcommandTool:
    return SubcommandTool(
        _ABOUT | names_in(verbs), other=rest.get("other", (_E.EXECUTE,)), without_verb=rest.get("without_verb", ())
    )


_PIP = SubcommandTool(
    _ABOUT
    | names_in(
        """
        list show freeze check inspect debug config tree info graph env_list env_info pip_list pip_show pip_freeze
        pip_check pip_tree python_list
        """
    ),
    names_in("index search download outdated"),
    other=INSTALL,
)
_NPM = SubcommandTool(
    _ABOUT | names_in("ls list ll la root prefix bin config why explain query fund -ls get"),
    names_in("view info show outdated search ping audit whoami docs repo bugs home"),
    installs=names_in(
        """
        install i ci add update upgrade uninstall remove rm link publish init create exec dlx pack dedupe prune up
        unpublish deprecate login adduser token
        """
    ),
    without_verb=INSTALL,
)
_CONTAINERS = SubcommandTool(
    _ABOUT
    | names_in(
        """
        ps images inspect logs info stats top port diff history events system_df ls list image_ls image_list
        image_inspect image_history container_ls container_list container_inspect container_logs volume_ls
        volume_inspect network_ls network_inspect compose_ps compose_logs compose_config compose_ls compose_images
        compose_version compose_top context_ls context_show buildx_ls node_ls service_ls stack_ls
        """
    ),
    names_in("search pull image_pull compose_pull"),
)
_KUBE = _read_only_tool(
    """
    get describe logs explain top api-resources api-versions cluster-info diff events config_get-contexts
    config_current-context config_get-clusters config_view auth_can-i rollout_status rollout_history wait options
    plugin_list auth_whoami
    """,
    other=(_E.ADMIN, _E.EXECUTE),
)
_TERRAFORM = _read_only_tool(
    "validate show output graph providers fmt state_list state_show workspace_list workspace_show", other=_REMOTE_ADMIN
)
_SYSTEMD = _read_only_tool(
    """
    status list-units list-unit-files is-active is-enabled is-failed show cat list-timers list-dependencies list-jobs
    list-sockets get-default --failed --state --type --all
    """,
    other=(_E.ADMIN,),
)
_PACKAGES = _read_only_tool(
    """
    list info search repolist leaves deps uses config doctor desc outdated history provides check -Q -Qi -Ql -Qs -Ss -Si
    -Qe --list services
    """,
    other=_ADMIN_INSTALL,
)
_APT = _read_only_tool("list show search policy depends rdepends madison changelog showpkg stats", other=_ADMIN_INSTALL)
_SECRETS = SubcommandTool(names_in("--version --help"), other=(_E.SECRET,), without_verb=(_E.SECRET,))
_KEYS = SubcommandTool(names_in("--version --help -l -lf -L"), other=(_E.SECRET, _E.WRITE), without_verb=(_E.SECRET,))
_CARGO = SubcommandTool(
    _ABOUT | names_in("tree metadata locate-project pkgid verify-project read-manifest --list"),
    names_in("search info owner"),
    installs=names_in("install add update publish fetch yank login uninstall generate-lockfile"),
)
_GO = SubcommandTool(
    _ABOUT | names_in("list env doc mod_graph mod_why"), installs=names_in("get install mod_download mod_tidy")
)
_VERSIONS = _read_only_tool(
    "status st log diff info cat blame annotate ls summary heads branches tags show identify id root files",
    other=(_E.WRITE, _E.NETWORK),
)
_ROWS: tuple[tuple[str, SubcommandTool], ...] = (
    ("apt apt-get aptitude", _APT),
    ("apt-cache", _read_only_tool("policy show search depends rdepends madison pkgnames stats showpkg")),
    (
        """
        yum dnf microdnf zypper apk pacman snap flatpak brew port pkg emerge nix nix-env guix choco winget scoop opkg
        xbps-install tdnf yay
        """,
        _PACKAGES,
    ),
    ("pip pip3 pip2 pipx uv conda mamba micromamba poetry pipenv rye pdm pixi", _PIP),
    ("npm pnpm yarn bower volta nvm fnm n corepack lerna jspm", _NPM),
    ("npx pnpx bunx uvx yarnpkg", SubcommandTool(names_in("--version --help"), other=INSTALL, without_verb=INSTALL)),
    ("cargo", _CARGO),
    ("go", _GO),
    ("rustup", _read_only_tool("show which toolchain_list target_list component_list", other=INSTALL)),
    (
        "gem bundle bundler",
        _read_only_tool(
            "list environment which contents specification show check outdated info query dependency", other=INSTALL
        ),
    ),
    ("composer", _read_only_tool("show info licenses validate about diagnose status", other=INSTALL)),
    ("docker podman nerdctl podman-compose crictl ctr lxc buildah", _CONTAINERS),
    ("docker-compose", _read_only_tool("ps logs config ls images top port events")),
    ("kubectl oc k3s k microk8s", _KUBE),
    ("minikube kind k3d", _read_only_tool("status ip get profile_list node_list", other=(_E.ADMIN, _E.EXECUTE))),
    (
        "helm",
        _read_only_tool(
            "list ls status get history show template lint env repo_list search dependency_list", other=_REMOTE_ADMIN
        ),
    ),
    ("terraform tofu pulumi terragrunt", _TERRAFORM),
    (
        "ansible ansible-playbook salt puppet chef-client vagrant packer",
        _read_only_tool("status global-status", other=_REMOTE_ADMIN, without_verb=(_E.ADMIN,)),
    ),
    ("ansible-galaxy", _read_only_tool("list", other=INSTALL)),
    ("systemctl rc-service", _SYSTEMD),
    (
        "hostnamectl timedatectl localectl loginctl resolvectl",
        _read_only_tool("status list-sessions list-users show list-timezones query statistics", other=(_E.ADMIN,)),
    ),
    ("supervisorctl", _read_only_tool("status avail tail pid", other=(_E.ADMIN,))),
    ("pm2", _read_only_tool("list ls status logs show describe monit info jlist")),
    ("launchctl", _read_only_tool("list print blame", other=(_E.ADMIN,))),
    (
        """
        gcloud az doctl heroku fly flyctl vercel netlify wrangler firebase railway oci ibmcloud linode-cli hcloud eksctl
        stripe supabase etcdctl consul rabbitmqctl kafka-topics nomad
        """,
        _read_only_tool(other=(_E.ADMIN, _E.NETWORK)),
    ),
    (
        "nginx apachectl apache2ctl httpd",
        _read_only_tool("-t -T configtest -S -M", other=(_E.ADMIN,), without_verb=(_E.ADMIN,)),
    ),
    ("hg svn bzr fossil jj", _VERSIONS),
    ("asdf", _read_only_tool("current list where which plugin_list", other=INSTALL)),
    ("tmutil", _read_only_tool("listbackups status", other=(_E.ADMIN,))),
    ("diskutil", _read_only_tool("list info", other=(_E.ADMIN,))),
    ("virsh", _read_only_tool("list dominfo nodeinfo", other=(_E.ADMIN,))),
    ("vault", _read_only_tool("status", other=(_E.SECRET, _E.NETWORK))),
    ("op bw lpass security keyctl secret-tool chamber doppler keyring", _SECRETS),
    ("ssh-keygen ssh-add ssh-agent certbot mkcert htpasswd kinit klist", _KEYS),
)
SUBCOMMAND_TOOLS: dict[str, SubcommandTool] = {name: tool for names, tool in _ROWS for name in names.split()}


def _options(**rows: str) -> dict[str, EffectKind]:
    return {option: EffectKind[kind] for kind, options in rows.items() for option in options.split()}


_CLUSTER = _options(NETWORK="-s --server", READ="--kubeconfig", WRITE="--output-directory --output-dir --cache-dir")
_OPTION_ROWS: tuple[tuple[str, dict[str, EffectKind]], ...] = (
    ("docker podman nerdctl docker-compose", _options(NETWORK="-H --host --url", READ="--config --env-file")),
    ("kubectl oc k k3s microk8s", _CLUSTER),
    ("helm", {**_CLUSTER, **_options(EXECUTE="--post-renderer", NETWORK="--repo --kube-apiserver")}),
    (
        "pip pip3 pip2 uv",
        _options(
            WRITE="--log --cache-dir --report",
            NETWORK="-i --index-url --extra-index-url --proxy --trusted-host",
            EXECUTE="--python",
        ),
    ),
    ("npm pnpm yarn", _options(NETWORK="--registry", EXECUTE="--script-shell", READ="--userconfig --globalconfig")),
    ("go", _options(EXECUTE="-toolexec -exec -vettool --toolexec -http -overlay", READ="-modfile")),
    ("cargo", _options(EXECUTE="--config")),
    ("terraform tofu terragrunt", {**dict.fromkeys(("-raw", "-json"), _E.SECRET), "-state": _E.READ, "-out": _E.WRITE}),
    ("systemctl journalctl", _options(NETWORK="-H --host", READ="--root")),
)
OPTIONS: dict[str, dict[str, EffectKind]] = {name: row for names, row in _OPTION_ROWS for name in names.split()}
"""Options with effects beyond those of the verb."""
