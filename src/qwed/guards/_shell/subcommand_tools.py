"""Roles of operands of tools with subcommands: containers, clusters, clouds, package managers."""

import re

from qwed.guards._shell.grammar.context import Argument, Role, RoleContext
from qwed.guards.file_effects import has_secrets_below, is_secret
from qwed.model import EffectKind

_E = EffectKind
_SECRET_RESOURCE = re.compile(r"(?i)(?:.*[/,])?(?:secrets?|sealedsecrets?|externalsecrets?)(?:[./,].*)?\Z")
_HOST_MOUNT = re.compile(
    r"/:|/(?:etc|root|home|var|proc|sys|dev|boot|usr)\b|.*docker\.sock|.*(?:source|src)=/(?:,|\Z)|type=bind"
)


def _kube_resource(context: RoleContext, argument: Argument) -> None:
    """Report secrets of a cluster."""
    if not argument.word.is_resolved:
        context.unresolved(f"`{argument.word.text[:64]}` is known only at run time")
    elif _SECRET_RESOURCE.match(argument.word.text):
        context.add(_E.SECRET)


def _mount(context: RoleContext, argument: Argument) -> None:
    """Report a directory of the host inside a container."""
    if not argument.word.is_resolved:
        context.unresolved(f"`{argument.word.text[:64]}` is known only at run time")
    elif _HOST_MOUNT.match(argument.word.text):
        context.add(_E.ADMIN)


def _host_access(context: RoleContext, argument: Argument) -> None:
    """Report a container that shares a namespace with the host."""
    if argument.word.text == "host":
        context.add(_E.ADMIN)


_ADDRESS = re.compile(r"(?i)[a-z][a-z0-9+.-]*://")


def _file_or_url(context: RoleContext, argument: Argument) -> None:
    if _ADDRESS.match(argument.word.text):
        context.add(_E.NETWORK, argument.word.text)
    else:
        context.add_file(_E.READ, argument.word)


_PROTOCOL = re.compile(r"(\w+)[:,]")


def _media_file(context: RoleContext, argument: Argument) -> None:
    """Report a file that is shown, or what a prefix such as `concat:` makes of it."""
    match = _PROTOCOL.match(argument.word.text)
    if match and match[1] not in ("http", "https"):
        context.unresolved(f"`{argument.word.text[:64]}` is not a plain file")
    _file_or_url(context, argument)


_NAMES = re.compile(r"[A-Za-z0-9_+,-]+")


def _word(context: RoleContext, argument: Argument) -> None:
    """Report a value that is more than names, where a longer one names a file, a class or a program."""
    if not (argument.word.is_exact and _NAMES.fullmatch(argument.word.text)):
        context.unresolved(f"`{argument.word.text[:64]}` is not a known value of `{argument.option}`")


_NAME = re.compile(r"[\w-]+")


def _name(context: RoleContext, argument: Argument) -> None:
    """Report a value that is more than a name, where parts after it change something."""
    if not (argument.word.is_exact and _NAME.fullmatch(argument.word.text)):
        context.unresolved(f"`{argument.word.text[:64]}` is not a known value of `{argument.option}`")


_REMOTE_NAME = re.compile(r"\w[\w. -]*:")


def _remote_name(context: RoleContext, argument: Argument) -> None:
    """Report `name:path` or a local path; a remote that is described in place can run programs."""
    text = argument.word.text
    if _REMOTE_NAME.match(text):
        context.add(_E.NETWORK, text)
    elif ":" in text or not argument.word.is_resolved:
        context.unresolved(f"the remote `{text[:64]}` is not understood")
    else:
        context.add_file(_E.READ, argument.word)


def _kube_config(context: RoleContext, argument: Argument) -> None:
    """Report a configuration; it names programs that are run for credentials."""
    context.add_file(_E.READ, argument.word)
    context.add(_E.EXECUTE, argument.word.text)


def _kube_server(context: RoleContext, argument: Argument) -> None:
    context.add(_E.NETWORK, argument.word.text)
    context.unresolved(f"the credentials of the cluster are sent to `{argument.word.text[:64]}`")


def _code_name(context: RoleContext, argument: Argument) -> None:
    """Report a formula that is named by its path, or that of a repository of others: it is run."""
    if "/" in argument.word.text or argument.word.text.endswith((".rb", ".json")) or not argument.word.is_exact:
        context.add(_E.EXECUTE, argument.word.text)


_PYTHON_VERSION = re.compile(r"(?:(?:cpython|pypy|graalpy|python|cp|pp)[@-]?)?[\d.,<>=!~*]*[dt]?")


def _python_version(context: RoleContext, argument: Argument) -> None:
    """Report an interpreter that is named by its path."""
    if not (_PYTHON_VERSION.fullmatch(argument.word.text) and argument.word.is_exact):
        context.add(_E.EXECUTE, argument.word.text)


_LOCAL_HYPERVISOR = re.compile(r"(?:qemu|xen|lxc|vbox|bhyve|test|vz):///(?:system|session|default)?")


def _hypervisor(context: RoleContext, argument: Argument) -> None:
    """Report a hypervisor of another machine; some transports run a program."""
    text = argument.word.text
    if "?" in text or "+" in text:
        context.escape(text)
    elif not _LOCAL_HYPERVISOR.fullmatch(text):
        context.add(_E.NETWORK, text)


_CONTAINER_PATH = re.compile(r"[\w][\w.-]*:(.*)", re.DOTALL)


def _container_source(context: RoleContext, argument: Argument) -> None:
    """Report a path of this machine or, after `container:`, one inside a container."""
    match = _CONTAINER_PATH.match(argument.word.text)
    if not argument.word.is_resolved:
        context.unresolved(f"`{argument.word.text[:64]}` is known only at run time")
    elif match is None:
        context.add_file(_E.READ, argument.word)
        context.analysis.add_tree_read(argument.word)
    elif is_secret(match[1]) or has_secrets_below(match[1]):
        context.add(_E.SECRET, argument.word.text)


def _container_target(context: RoleContext, argument: Argument) -> None:
    """Report what is written, with the name of its source if the target is a directory."""
    word = argument.word
    if _CONTAINER_PATH.match(word.text):
        context.add(_E.WRITE, word.text)
    elif word.text != "-":
        name = context.parsed.operands[0].text.rstrip("/").rpartition("/")[2].rpartition(":")[2]
        context.add_file(_E.WRITE, word)
        context.add_file(_E.WRITE, word._replace(text=f"{word.text.rstrip('/')}/{name or '.'}"))


_IMAGE_FILE = re.compile(r"(?:oci-archive|docker-archive|oci|dir):([^:]+)(?::.*)?", re.DOTALL)
_IMAGE_STORE = ("containers-storage:", "docker-daemon:")


def _image_location(kind: EffectKind) -> Role:
    """Return the role of an image at a registry, in a file, or in the store of this machine."""

    def report(context: RoleContext, argument: Argument) -> None:
        text = argument.word.text
        if text.startswith("docker://") and argument.word.is_exact:
            context.add(_E.NETWORK, text)
            if kind is _E.WRITE:
                context.add(_E.COMMUNICATE, text)
                context.add(_E.WRITE, text)
        elif match := _IMAGE_FILE.fullmatch(text):
            context.add_file(kind, argument.word._replace(text=match[1]))
        elif text.startswith(_IMAGE_STORE):
            context.add(kind, text)
        else:
            context.unresolved(f"the image `{text[:64]}` is not understood")

    return report


_PLAIN_SETTING = re.compile(
    r"(?:(?:core|compute|run|functions|container|artifacts|dataproc|dataflow|ai|deploy|eventarc|redis|filestore|default"
    r"|profile\.[\w-]+)[/.])?(?:project|account|region|zone|location|cluster|output|cli_timestamp_format|max_attempts|retry_mode"
    r"|verbosity|disable_prompts|disable_usage_reporting)"
)


def _cloud_setting(context: RoleContext, argument: Argument) -> None:
    """Report a setting of a cloud client unless it only chooses a project, a place or a format."""
    if not (argument.word.is_exact and _PLAIN_SETTING.fullmatch(argument.word.text)):
        context.add(_E.ADMIN)
        context.add(_E.SECRET)


def _rustfmt_check(context: RoleContext, argument: Argument) -> None:
    """Report an argument of rustfmt unless it only checks."""
    if all(word.text != "--check" for word in context.parsed.operands) or argument.word.text not in _RUSTFMT_CHECK:
        context.unresolved(f"`{argument.word.text[:64]}` of `rustfmt` is not understood")


_RUSTFMT_CHECK = frozenset({"--check", "-l", "--files-with-diff", "-v", "--verbose", "-q", "--quiet", "--color=always"})
_PLAIN_OUTPUT = re.compile(
    r"(?i)(?:\w+[_-])?(?:ids?|arns?|names?|regions?|zones?|ips?|address(?:es)?|cidrs?|dns|domains?|hosts?|hostnames?|ports?"
    r"|versions?|buckets?|sizes?|counts?|endpoints?)"
)


def _output_name(context: RoleContext, argument: Argument) -> None:
    """Report an output value of an infrastructure unless its name is that of an identifier or an address."""
    text = argument.word.text
    if not (argument.word.is_exact and _PLAIN_OUTPUT.fullmatch(text)) or _SECRET_OUTPUT.search(text):
        context.add(_E.SECRET)


_SECRET_OUTPUT = re.compile(r"(?i)key|secret|token|passw|cred|auth|cert|connection")

ROLES: dict[str, Role] = {
    "container-source": _container_source,
    "container-target": _container_target,
    "image-source": _image_location(_E.READ),
    "image-target": _image_location(_E.WRITE),
    "cloud-setting": _cloud_setting,
    "rustfmt-check": _rustfmt_check,
    "output-name": _output_name,
    "media-file": _media_file,
    "python-version": _python_version,
    "hypervisor": _hypervisor,
    "code-name": _code_name,
    "kube-config": _kube_config,
    "kube-server": _kube_server,
    "kube-resource": _kube_resource,
    "mount": _mount,
    "host-access": _host_access,
    "file-or-url": _file_or_url,
    "remote-name": _remote_name,
    "word": _word,
    "name": _name,
}
