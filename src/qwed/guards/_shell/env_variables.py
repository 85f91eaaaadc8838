"""Effects of setting environment variables that determine what other programs run."""

import re

from qwed.guards._shell.command_model import ShellReport, Violation, Word, names_in
from qwed.model import EffectKind

_LOADS_CODE = names_in(
    """
    LD_PRELOAD LD_LIBRARY_PATH LD_AUDIT DYLD_INSERT_LIBRARIES DYLD_LIBRARY_PATH BASH_ENV ENV PROMPT_COMMAND PS4
    BASH_FUNC SHELLOPTS BASHOPTS PYTHONSTARTUP PYTHONHOME PYTHONINSPECT PYTHONWARNINGS PERL5OPT PERL5LIB PERL5DB
    RUBYOPT RUBYLIB GIT_SSH GIT_SSH_COMMAND GIT_EXTERNAL_DIFF GIT_PROXY_COMMAND GIT_ASKPASS SSH_ASKPASS SUDO_ASKPASS
    GIT_EXEC_PATH GIT_TEMPLATE_DIR GCONV_PATH LESSOPEN LESSCLOSE ZDOTDIR FPATH JAVA_TOOL_OPTIONS _JAVA_OPTIONS
    NODE_PATH GIT_CONFIG_COUNT GIT_CONFIG_GLOBAL GIT_CONFIG_SYSTEM GIT_CONFIG TAR_OPTIONS RIPGREP_CONFIG_PATH
    MAVEN_OPTS NODE_OPTIONS PHPRC PHP_INI_SCAN_DIR LUA_INIT AWKPATH AWKLIBPATH INPUTRC TERMINFO GREP_OPTIONS
    npm_config_script_shell HOSTALIASES OPENSSL_CONF OPENSSL_ENGINES GTK_MODULES QT_PLUGIN_PATH XDG_CONFIG_HOME
    """
)
_PAGER_VARIABLES = names_in(
    """
    PAGER GIT_PAGER MANPAGER EDITOR VISUAL GIT_EDITOR BROWSER SYSTEMD_PAGER AWS_PAGER FCEDIT SUDO_EDITOR
    GIT_SEQUENCE_EDITOR KUBE_EDITOR SYSTEMD_EDITOR DELTA_PAGER BAT_PAGER PSQL_PAGER
    """
)
SAFE_PAGERS = frozenset(
    ["", "cat", "less", "more", "true", ":", "vim", "vi", "nano", "emacs", "code --wait", "less -R"]
)
"""Common pagers and editors."""
_HIDES_TRACES = names_in("HISTFILE HISTSIZE HISTCONTROL HISTIGNORE HISTFILESIZE")
_SEARCH_VARIABLES = names_in("PATH CDPATH HOME SHELL TERM_PROGRAM")
_ANOTHER_MACHINE = names_in(
    """
    DOCKER_HOST http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY PIP_INDEX_URL PIP_EXTRA_INDEX_URL
    npm_config_registry NPM_CONFIG_REGISTRY UV_INDEX_URL GOPROXY
    """
)
_MEMORY_OPTION = re.compile(r"--max[-_]old[-_]space[-_]size=\d+|--no-warnings|--enable-source-maps")
_PROMPT_CODE = re.compile(r"\$\(|`")


def analyze_assignment(report: ShellReport, name: str, values: list[Word], for_command: bool) -> None:
    """Report the effects of giving a variable these values; no values if it is unset."""
    text = " ".join(value.text for value in values)
    if name in _LOADS_CODE or name.startswith(("BASH_FUNC_", "GIT_CONFIG_KEY", "GIT_CONFIG_VALUE")):
        if (text or any(not value.is_exact for value in values)) and not (
            name == "NODE_OPTIONS" and _MEMORY_OPTION.fullmatch(text)
        ):
            report.add_violation(Violation.ENVIRONMENT)
            report.add_effect(EffectKind.ADMIN, f"{name}={text}")
    elif name in _PAGER_VARIABLES and text not in SAFE_PAGERS:
        report.add_violation(Violation.ENVIRONMENT)
        report.add_effect(EffectKind.ADMIN, f"{name}={text}")
    elif name in _HIDES_TRACES or name in _SEARCH_VARIABLES:
        report.add_effect(EffectKind.ADMIN, f"{name}={text}")
        if name == "PATH" and for_command:
            report.add_violation(Violation.ENVIRONMENT)
    elif name in _ANOTHER_MACHINE and text:
        report.add_effect(EffectKind.NETWORK, text)
    elif name in ("PS1", "PS2", "PS0") and _PROMPT_CODE.search(text):
        report.add_violation(Violation.ENVIRONMENT)
