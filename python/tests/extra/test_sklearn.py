"""The estimators inside scikit-learn, joblib and pandas."""

import warnings

import hollownet
import numpy as np
import pytest

sklearn = pytest.importorskip("sklearn")
from sklearn.base import clone  # noqa: E402
from sklearn.model_selection import GridSearchCV, cross_val_score  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.utils.estimator_checks import parametrize_with_checks  # noqa: E402

EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": "rows are drawn at random in proportion to their weights, so a weight of 2 and "
    "a row that stands twice give the same distribution of draws, but not the same draws"
}


def data(rows=200, seed=0):
    X = np.random.default_rng(seed).normal(size=(rows, 2))
    X[:, 1] += X[:, 0] ** 2
    return X


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [
        hollownet.Density(iters=2, threads=1),
        hollownet.Density(iters=2, threads=1, members="flow"),
        hollownet.OutlierDetector(iters=2, threads=1),
    ],
    expected_failed_checks=lambda estimator: EXPECTED,
)
def test_check_estimator(estimator, check):
    check(estimator)


def test_clone():
    model = hollownet.Density(iters=7, lr=0.02, model="maf", random_state=3)
    assert clone(model).get_params() == model.get_params()
    assert clone(hollownet.SDE(iters=3)).get_params()["iters"] == 3
    model.set_params(iters=8)
    assert model.iters == 8


def test_joblib():
    joblib = pytest.importorskip("joblib")
    X = data()
    model = hollownet.Density(iters=5).fit(X)
    expected = model.score_samples(X)
    parts = joblib.Parallel(n_jobs=2)(joblib.delayed(model.score_samples)(part) for part in np.array_split(X, 4))
    assert np.array_equal(np.concatenate(parts), expected)


@pytest.mark.filterwarnings("ignore")
def test_grid_search():
    search = GridSearchCV(hollownet.Density(iters=10, model="maf", random_state=0), {"hidden": [4, 8]}, cv=2, n_jobs=2)
    search.fit(data())
    assert search.best_params_["hidden"] in (4, 8)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert np.isfinite(cross_val_score(hollownet.Density(iters=3), data(), cv=2)).all()


@pytest.mark.filterwarnings("ignore")
def test_pipeline():
    X = data() * [100, 0.01] + [5, 7]
    line = make_pipeline(StandardScaler(), hollownet.Density(iters=20, random_state=0)).fit(X)
    scaler = line[0]
    expected = line[1].score_samples(scaler.transform(X))
    assert np.array_equal(line.score_samples(X), expected)
    assert np.isfinite(line.score(X))


def test_html():
    assert "Density" in hollownet.Density(iters=3)._repr_html_()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_tables(library, tmp_path):
    module = pytest.importorskip(library)
    X = data()
    columns = {"a": X[:, 0], "b": X[:, 1]}
    table = module.table(columns) if library == "pyarrow" else module.DataFrame(columns)
    model = hollownet.Density(iters=3).fit(table)
    assert list(model.feature_names_in_) == ["a", "b"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        logp = model.score_samples(table)
    assert np.array_equal(logp, hollownet.Density.from_bytes(model.to_bytes()).score_samples(X))
    path = tmp_path / "x.parquet"
    if library == "pyarrow":
        import pyarrow.parquet

        pyarrow.parquet.write_table(table, path)
    elif library == "polars":
        table.write_parquet(path)
    else:
        pytest.importorskip("pyarrow")
        table.to_parquet(path)
    assert np.array_equal(model.score_samples(hollownet.read_parquet(path)), logp)


def test_dask():
    pytest.importorskip("dask")
    dataframe = pytest.importorskip("dask.dataframe")
    pd = pytest.importorskip("pandas")
    X = data(1000)
    table = pd.DataFrame(X, columns=["a", "b"])
    model = hollownet.Density(iters=5).fit(table)
    expected = model.score_samples(table)

    parts = dataframe.from_pandas(table, npartitions=6)
    scored = parts.map_partitions(
        lambda part: pd.Series(model.score_samples(part), index=part.index), meta=("logp", "f8")
    )
    result = scored.compute(scheduler="processes", num_workers=2)
    assert np.array_equal(result.sort_index().to_numpy(), expected)
