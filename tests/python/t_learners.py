"""t_learners.py - the learners beside the forecaster: what the program learns, saved and loaded."""
import numpy as np
from common import Case, e2e, pd, stretto
from stretto.learners import CRF, HMM, Forest, KMeans, SequenceClassifier, SequenceRegressor, Tagger

RNG = np.random.default_rng(1)
X = RNG.random((300, 3))


class Records(Case):
    def test_forest_of_classes(self):
        y = np.where(X[:, 0] + X[:, 1] > 1, "hi", "lo")
        made = Forest(trees=20).fit(X, y)
        self.assertGreater(made.score(X, y), 0.98)
        shares = made.predict_proba(X)
        self.assertEqual((shares.shape, made.classes_), ((300, 2), ["hi", "lo"]))
        np.testing.assert_allclose(shares.sum(1), 1, atol=1e-6)
        np.testing.assert_array_equal(made.predict(X), np.array(["hi", "lo"])[shares.argmax(1)])
        frame = pd.DataFrame(X, columns=["x0", "x1", "x2"])
        np.testing.assert_array_equal(made.predict(frame), made.predict(X))
        made.save(self.path("f.model"))
        np.testing.assert_array_equal(Forest.load(self.path("f.model")).predict(X), made.predict(X))
        with self.assertRaises(stretto.UsageError):
            KMeans.load(self.path("f.model"))

    def test_forest_is_that_of_the_program(self):
        y = np.where(X[:, 0] > 0.5, "a", "b")
        pd.DataFrame(X, columns=["x0", "x1", "x2"]).assign(label=y).to_csv(self.path("t.csv"), index=False, float_format="%.17g")
        self.stretto("train", "t.csv", "--task", "forest", "--target", "label", "--trees", 20, "-o", "cli.model", "--quiet")
        Forest(trees=20).fit(X, y).save(self.path("py.model"))
        self.same_model("cli.model", "py.model", "a forest")

    def test_forest_of_numbers(self):
        self.assertGreater(Forest(trees=30).fit(X, 3 * X[:, 0]).score(X, 3 * X[:, 0]), 0.95)

    def test_kmeans(self):
        points = np.concatenate([X[:100] * 0.1, X[:100] * 0.1 + 5])
        made = KMeans(clusters=2).fit(points)
        labels = made.predict(points)
        self.assertEqual((set(labels[:100]) | set(labels[100:]), len(set(labels[:100]))), ({0, 1}, 1))
        self.assertEqual(made.transform(points).shape, (200,))
        self.assertLess(made.score(points), 0)

    def test_before_fit(self):
        with self.assertRaises(stretto.UsageError) as raised:
            Forest().predict(X)
        self.assertIn("fit", raised.exception.fix)


class Sequences(Case):
    def test_classes_and_numbers(self):
        sequences = [RNG.random((10 + k % 4, 2)) + k % 2 for k in range(40)]
        classes = ["up" if k % 2 else "down" for k in range(40)]
        made = SequenceClassifier(epochs=10).fit(sequences, classes)
        self.assertGreater(made.score(sequences, classes), 0.9)
        self.assertEqual(made.predict_proba(sequences).shape, (40, 2))
        numbers = [float(k % 2) for k in range(40)]
        self.assertEqual(SequenceRegressor(epochs=3).fit(sequences, numbers).predict(sequences).shape, (40,))


class Sentences(Case):
    words = [["w%d" % w for w in RNG.integers(0, 8, 6)] for _ in range(60)]
    tags = [["t%d" % (int(w[1:]) % 2) for w in s] for s in words]

    def test_tags_of_words(self):
        for made in (CRF(), HMM(), Tagger(epochs=8)):
            made.fit(self.words, self.tags)
            self.assertGreater(made.score(self.words, self.tags), 0.9, made)
            self.assertEqual([len(s) for s in made.predict(self.words)], [6] * 60)

    def test_probabilities_of_tags(self):
        for sentences in self.words, [[{"w": w} for w in s] for s in self.words]:
            made = CRF().fit(sentences, self.tags)
            self.assertEqual(sorted(made.classes_), ["t0", "t1"])
            found = made.predict_marginals(sentences)
            self.assertEqual([len(s) for s in found], [6] * 60)
            for token, tag in zip([t for s in found for t in s], [t for s in made.predict(sentences) for t in s]):
                self.assertAlmostEqual(sum(token.values()), 1, places=4)
                self.assertEqual(max(token, key=lambda name: token[name]), tag)
            self.assertEqual(made.predict_marginals_single(sentences[0]), found[0])
            self.assertEqual(made.predict_single(sentences[0]), made.predict(sentences)[0])

    def test_features_of_tokens(self):
        sentences = [[{"w": w, "odd": int(w[1:]) % 2 == 1, "a:b": "c\\d"} for w in s] for s in self.words]
        made = CRF().fit(sentences, self.tags)
        self.assertEqual(made.score(sentences, self.tags), 1)
        made.save(self.path("c.model"))
        self.assertEqual(CRF.load(self.path("c.model")).predict(sentences), made.predict(sentences))
        with self.assertRaises(stretto.UsageError):
            CRF().fit([[{"w": 0.5}]], [["t"]])

    def test_hidden_states(self):
        self.assertEqual({len(s) for s in HMM(states=2).fit(self.words).predict(self.words)}, {6})


if __name__ == "__main__":
    e2e.main()
