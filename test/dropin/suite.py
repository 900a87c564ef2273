# SPDX-License-Identifier: MIT
"""Run rdma-core's own tests and write a line for each.

suite.py LISTFILE DEVICE GID FOLDER: FOLDER holds their package `tests`.
A line is the test's name, its verdict (pass, fail, skip) and, after a tab,
the reason.  The tests themselves say what they do on standard error.
"""
import os
import sys
import unittest


class Lines(unittest.TextTestResult):
    """Each verdict goes to the file at once: a crash loses only the rest."""

    out = None

    def tell(self, test, verdict, reason=''):
        name = test.id()
        if name.startswith('tests.'):
            name = name[len('tests.'):]
        reason = ' '.join(str(reason).split())[:200]
        self.out.write('%s %s\t%s\n' % (name, verdict, reason))
        self.out.flush()

    def addSuccess(self, test):
        super().addSuccess(test)
        self.tell(test, 'pass')

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.tell(test, 'skip', reason)

    def addError(self, test, err):
        super().addError(test, err)
        self.tell(test, 'fail', err[1])

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.tell(test, 'fail', err[1])


def main():
    listfile, device, gid, folder = sys.argv[1:]
    # As the suite's own runner reads its options.
    sys.argv[1:] = ['-v', '--dev', device, '--port', '1', '--gid', gid]
    sys.path.insert(0, folder)
    sys.path.insert(0, os.path.join(folder, 'tests'))
    import tests
    from args_parser import parser
    parser.parse_args()
    Lines.out = open(listfile, 'w')
    unittest.main(module=tests, testRunner=unittest.TextTestRunner(
        verbosity=2, resultclass=Lines))


main()
