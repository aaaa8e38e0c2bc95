"""spark_forecast.py - a forecast of the airline series on Spark; docs/spark.md. Run it in pyspark, from the root of the checkout."""
from pyspark.sql import SparkSession
from stretto.spark import StrettoForecaster

spark = SparkSession.builder.getOrCreate()
df = spark.read.csv("examples/airline-passengers.csv", header=True, inferSchema=True)
est = StrettoForecaster(label_col="Passengers", time_col="Month", horizon=12, num_workers=2)
model = est.fit(df)
model.transform(df).show()
model.write().overwrite().save("airline")
model.write_file("airline.model")
