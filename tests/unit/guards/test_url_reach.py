"""Classification of URLs by their host, in every spelling."""

import pytest

from qwed.guards.url_reach import MAX_LENGTH, Reach, reach_of

METADATA = [
    "http://169.254.169.254/latest/meta-data/",
    "169.254.169.254",
    "169.254.169.254:80",
    "http://2852039166/",
    "http://0xa9fea9fe/",
    "http://0xA9.0xFE.0xA9.0xFE/",
    "http://0251.0376.0251.0376/",
    "http://169.254.43518/",
    "http://169.16689662/",
    "http://[::ffff:169.254.169.254]/",
    "http://[::ffff:a9fe:a9fe]:80/",
    "http://[::169.254.169.254]/",
    "http://[64:ff9b::a9fe:a9fe]/",
    "http://[2002:a9fe:a9fe::]/",
    "http://[fd00:ec2::254]/latest",
    "fd00:ec2::254",
    "http://100.100.100.200/latest/meta-data",
    "http://168.63.129.16/",
    "http://169.254.170.2/v2/credentials",
    "http://metadata.google.internal/computeMetadata/v1/",
    "http://METADATA.google.internal./",
    "http://metadata/",
    "http://user@169.254.169.254/",
    "http://user:word@169.254.169.254:80/",
    "http://169.254.169.254@example.com/",
    "http://%31%36%39.254.169.254/",
    "http://\uff11\uff16\uff19.254.169.254/",
    "http://169\u3002254\u3002169\u3002254/",
    "http://169.254.169.254.nip.io/",
    "http://a-169-254-169-254.sslip.io/",
    "http://a9fea9fe.nip.io/",
    "//169.254.169.254/x",
    "\\\\169.254.169.254\\x",
    "http:\\\\169.254.169.254/x",
    "http:169.254.169.254",
    "HTTP:/169.254.169.254/",
    "gopher://169.254.169.254:80/_GET",
]
INTERNAL = [
    "http://localhost:3000/",
    "localhost",
    "localhost:8080",
    "http://LOCALHOST./",
    "http://app.localhost/",
    "http://127.0.0.1:8000/x",
    "http://127.1/",
    "http://2130706433/",
    "http://0x7f.1/",
    "http://0177.0.0.1/",
    "http://0/",
    "http://0.0.0.0:9200/",
    "http://[::1]:6379/",
    "http://[::]/",
    "http://[::ffff:10.0.0.1]/",
    "http://[fe80::1%25eth0]/",
    "http://10.1.2.3/",
    "http://172.16.0.1/",
    "http://192.168.1.1/admin",
    "http://100.64.0.1/",
    "http://169.254.1.1/",
    "http://redis:6379/",
    "http:///redis/",
    "http://printer.local/",
    "http://vault.service.internal/",
    "http://127.0.0.1.nip.io/",
    "http://localtest.me/",
    "ws://localhost/",
    "10.0.0.1",
]
UNCLEAR = [
    "http://exa mple.com/",
    "http://ex\u0430mple.com/",
    "http://example.com\t.evil.com/",
    "https://" + "a" * MAX_LENGTH,
]
PUBLIC = [
    "https://example.com/a?b=c#d",
    "https://example.com:8443/",
    "https://user@example.com/",
    "https://medium.com/@someone/post",
    "https://example.com/http://127.0.0.1/",
    "https://8.8.8.8/dns-query",
    "https://[2606:4700::1111]/",
    "example.com",
    "example.com:443",
    "https://172.32.0.1/",
    "https://internal.example.com/",
    "https://localhost.example.com/",
    "https://localdomain.example.com/",
    "origin",
    "metadata",
    "",
    "https://1.1.1.1.example.com/",
    "https://0x.example/",
    "https://dead.beef/",
]


@pytest.mark.parametrize(
    ("address", "reach"),
    [
        (address, reach)
        for reach, table in zip(Reach, (PUBLIC, INTERNAL, UNCLEAR, METADATA), strict=True)
        for address in table
    ],
)
def test_the_reach_is_recognised_in_every_spelling(address: str, reach: Reach) -> None:
    assert reach_of(address) is reach
