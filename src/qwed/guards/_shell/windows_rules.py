"""Effects of Windows programs: program names, PowerShell verbs, and patterns that apply anywhere in a command."""

import re
from typing import NamedTuple

from qwed.guards._shell.command_model import Violation, names_in
from qwed.model import EffectKind

_E = EffectKind
Kinds = tuple[EffectKind, ...]


def _names(kinds: Kinds, text: str) -> dict[str, Kinds]:
    return dict.fromkeys(text.split(), kinds)


NAMES: dict[str, Kinds] = {
    **_names(
        (_E.READ,),
        """
        dir type more find findstr where echo ver vol systeminfo tasklist ipconfig hostname whoami tree fc comp help
        cls date time title rem driverquery getmac path chcp sort query quser gpresult color pause exit netstat gci gc
        gi gp gps gsv ls cat pwd gl select measure group ft fl fw write gm gcm gal sls man diff compare oh ps h
        setlocal endlocal goto arp route tzutil powershell_ise clip_ python3 get-help prompt doskey
        """,
    ),
    **_names((), "cd chdir sl pushd popd set-location push-location pop-location"),
    **_names((_E.DELETE,), "del erase rd rmdir deltree ri rm clear-content clear-recyclebin clear-disk sdelete cipher"),
    **_names((_E.DELETE, _E.ADMIN), "format format-volume clear-eventlog vssadmin wbadmin diskpart ntdsutil"),
    **_names(
        (_E.WRITE,),
        """
        copy xcopy robocopy move ren rename mklink mkdir md copy-item move-item rename-item new-item set-content
        add-content out-file tee-object tee expand-archive compress-archive ni cp mv cpi mi rni ac expand extrac32
        makecab clip
        """,
    ),
    **_names(
        (_E.ADMIN,),
        """
        attrib icacls cacls takeown regedit reg netsh net net1 schtasks bcdedit fsutil wevtutil sc taskkill setx
        shutdown sfc dism chkdsk gpupdate powercfg label subst logoff runas at wusa auditpol secedit manage-bde kill
        spps wmic nltest dsquery assoc ftype pnputil w32tm winrm psexec psexec64 logman tscon msg mountvol diskshadow
        """,
    ),
    **_names(
        (_E.SECRET,),
        "cmdkey klist procdump procdump64 mimikatz rubeus sharphound get-credential get-clipboard get-secret vaultcmd"
        " set gcb esentutl read-host get-history h convertfrom-securestring get-aduser get-psreadlineoption ghy",
    ),
    **_names(
        (_E.NETWORK,),
        "ping nslookup tracert pathping telnet ftp curl wget iwr irm invoke-webrequest invoke-restmethod"
        " test-netconnection test-connection resolve-dnsname start-bitstransfer tnc nbtstat mstsc tftp ssh scp",
    ),
    **_names((_E.NETWORK, _E.WRITE), "bitsadmin certutil certreq"),
    **_names((_E.COMMUNICATE,), "send-mailmessage"),
    **_names(
        (_E.EXECUTE,),
        """
        start start-process saps call msbuild explorer python py node java dotnet npm npx pip git code invoke-item ii
        import-module ipmo choco winget cmd powershell pwsh mshta rundll32 regsvr32 wscript cscript installutil regasm
        regsvcs cmstp odbcconf pcalua forfiles ieexec hh msxsl xwizard wsl bash msiexec iex invoke-expression icm
        invoke-command invoke-wmimethod invoke-cimmethod start-job sajb conhost control add-type new-object
        """,
    ),
}
VERBS: dict[str, Kinds] = {
    **_names(
        (_E.READ,),
        "get select where sort group measure test compare format resolve convertto convertfrom find show split join"
        " write out wait foreach",
    ),
    **_names((_E.DELETE,), "remove clear"),
    **_names((_E.WRITE,), "copy move rename new add out export save compress expand tee"),
    **_names(
        (_E.ADMIN,),
        """
        set enable disable stop restart install uninstall update register unregister suspend resume initialize mount
        dismount reset grant revoke limit checkpoint restore unblock protect unprotect debug publish use block repair
        backup
        """,
    ),
    **_names((_E.EXECUTE,), "invoke start import enter trace receive"),
    **_names((_E.COMMUNICATE,), "send"),
}
ONLY_WINDOWS = names_in(
    """
    invoke-expression invoke-webrequest invoke-restmethod invoke-command invoke-item remove-item get-content
    get-childitem set-content new-object start-process stop-process get-process get-service copy-item move-item
    new-item out-file select-string select-object where-object sort-object foreach-object set-executionpolicy
    add-mppreference set-mppreference get-item get-credential invoke-mimikatz stop-service stop-computer
    restart-computer test-path get-date get-location get-help get-command get-member measure-object format-table
    write-output write-host clear-recyclebin clear-eventlog new-localuser add-localgroupmember invoke-wmimethod
    start-bitstransfer del erase rd deltree xcopy robocopy attrib icacls cacls takeown regedit reg netsh net net1
    schtasks vssadmin bcdedit wbadmin certutil bitsadmin mshta rundll32 regsvr32 wmic powershell pwsh cmd cscript
    wscript msiexec taskkill tasklist systeminfo ipconfig diskpart fsutil wevtutil installutil regasm forfiles
    pcalua cmstp psexec psexec64 procdump procdump64 findstr setx cls ver iex iwr irm gci gc gps gsv copy move ren
    mklink sfc dism driverquery getmac gpresult gpupdate cmdkey esentutl nltest runas sc odbcconf hh mimikatz rubeus
    where assoc vol chkdsk powercfg makecab extrac32 quser wusa dsquery saps icm sls tracert ntdsutil secedit
    auditpol manage-bde wmiprvse conhost sdelete diskshadow
    """
)
"""Names that exist only on Windows."""


class WindowsPattern(NamedTuple):
    """Text with the same effects anywhere in a command."""

    pattern: re.Pattern[str]
    kinds: Kinds
    violation: Violation | None = None


def _pattern(pattern: str, *kinds: EffectKind, violation: Violation | None = None) -> WindowsPattern:
    return WindowsPattern(re.compile(pattern, re.IGNORECASE | re.DOTALL), kinds, violation)


_FETCH = r"(?:downloadstring|downloaddata|webclient|\biwr\b|\birm\b|\bcurl\b|\bwget\b|invoke-(?:webrequest|restmethod))"
_RUN = r"(?:\biex\b|invoke-expression)"
PATTERNS: tuple[WindowsPattern, ...] = (
    _pattern(r"vssadmin\b.{0,40}\bdelete|shadowcopy.{0,40}delete|win32_shadowcopy|shadowstorage", _E.DELETE, _E.ADMIN),
    _pattern(
        r"\breg(?:\.exe)?\s+(?:save|export)\b|lsass|\\(?:sam|security|ntds\.dit)\b|\bhklm\\sam|comsvcs|minidump",
        _E.SECRET,
    ),
    _pattern(r"[\\/]\.(?:ssh|aws|azure|kube)[\\/]|id_rsa|unattend\.xml|\\login data\b|(?:^|[\\/\s])\.env\b", _E.SECRET),
    _pattern(
        r"(?:password|credential|secret)\w*\.(?:txt|xlsx?|docx?|csv|xml|json)|\.(?:kdbx|pem|pfx|ppk)\b", _E.SECRET
    ),
    _pattern(r"\benv:(?:\s|\||$|\\)|\$env:\w*(?:key|token|secret|pass)", _E.SECRET),
    _pattern(
        r"https?://|ftp://|downloadfile|net\.webclient|net\.sockets|tcpclient|\\\\[\w.-]+\\|net\s+use\b", _E.NETWORK
    ),
    _pattern(_FETCH, _E.NETWORK),
    _pattern(
        r"certutil(?:\.exe)?\b.{0,200}[-/](?:urlcache|verifyctl|decode|encode|decodehex|ping)|bitsadmin(?:\.exe)?\s+/",
        *(_E.NETWORK, _E.WRITE),
        violation=Violation.ESCAPE,
    ),
    _pattern(
        r"\b(?:mshta|regsvr32|rundll32|installutil|regasm|regsvcs|cmstp|odbcconf|pcalua|forfiles|msxsl|wscript|cscript)"
        r"(?:\.exe)?\s",
        _E.EXECUTE,
        violation=Violation.ESCAPE,
    ),
    _pattern(
        r"process\s+call\s+create|/node:|win32_process|invoke-(?:wmimethod|cimmethod|command)|\bicm\b|psexec|\bwinrs\b"
        r"|-pssession",
        _E.EXECUTE,
        violation=Violation.ESCAPE,
    ),
    _pattern(
        _RUN + r"|\[scriptblock\]::create|\.invoke\s*\(|invokescript|add-type|reflection\.assembly|::load\s*\("
        r"|frombase64string|\$executioncontext|\[char\]|\[char\[\]\]|-bxor|getdelegateforfunctionpointer|virtualalloc",
        _E.EXECUTE,
        violation=Violation.INLINE_CODE,
    ),
    _pattern(
        rf"{_RUN}.{{0,400}}{_FETCH}|{_FETCH}.{{0,400}}\|\s*{_RUN}|curl\b.{{0,400}}\|\s*(?:cmd|powershell)",
        _E.EXECUTE,
        violation=Violation.REMOTE_TO_SHELL,
    ),
    _pattern(
        r"(?:powershell|pwsh)(?:\.exe)?\b.{0,400}\s[-/\u2013](?:e|ec|en[a-z]{0,20})\s+[a-z0-9+/=]{4,}",
        _E.EXECUTE,
        violation=Violation.DECODED_TO_SHELL,
    ),
    _pattern(
        r"\s[-/]w(?:i[a-z]{0,20})?\s+(?:h[a-z]*|1)\b|\s-nop\b|bypass\b|policy\s+unrestricted|amsiutils|amsi(?:init|scan)"
        r"|\s-noni\b",
        _E.EXECUTE,
        violation=Violation.OBFUSCATED,
    ),
    _pattern(
        r"currentversion\\+run|\\startup\\|schtasks(?:\.exe)?\b.{0,40}/create|-scheduledtask|\bsc(?:\.exe)?\s+create"
        r"|new-service|winlogon|image file execution|__eventfilter|sethc\.exe|utilman\.exe",
        _E.ADMIN,
        violation=Violation.PERSISTENCE,
    ),
    _pattern(
        r"tcpclient|net\.sockets\.tcp|\bnc(?:64)?(?:\.exe)?\s.{0,80}\s?-\w*e\b",
        _E.NETWORK,
        violation=Violation.REVERSE_SHELL,
    ),
    _pattern(
        r"%comspec%|%[a-z_]\w*:~|%\w+:[^%\n]{0,40}=[^%\n]{0,40}%|(?:[a-z]`){2,}|&\s*\(\s*['\"$(]|\.\s*\(\s*['\"$(]"
        r"|'\s*\+\s*'|\"\{\d\}\{\d\}|-join\b",
        _E.EXECUTE,
        violation=Violation.OBFUSCATED,
    ),
    _pattern(
        r"%0\s*\|\s*%0|start\s+%0|\bgoto\s+\w+.{0,40}start\b|start\b.{0,40}\bgoto\b",
        _E.EXECUTE,
        violation=Violation.FORK_BOMB,
    ),
    _pattern(r"defender|set-mppreference|add-mppreference|firewall\b.{0,40}(?:off|disable)|tamperprotection", _E.ADMIN),
    _pattern(r"remove-item\b.{0,200}-rec|\bdel\b.{0,80}/s|\b(?:rd|rmdir)\b.{0,80}/s", _E.DELETE),
)
